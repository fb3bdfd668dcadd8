// Package changes finds out what was changed in the folders of a session or a task.
//
// A folder in a git repository is compared with what it had before: a session's with the snapshot
// from its first turn, a worktree with the commit on which its work began. Who changed a file is
// not known, unless a tool call of the session names it. Of other folders only these calls are
// known.
package changes

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Folder is a folder with what was changed in it.
type Folder struct {
	Folder string `json:"folder"`
	// Since is when a session's snapshot was taken.
	Since time.Time `json:"since,omitzero"`
	// Reported says why Files are only those that tool calls reported, or "".
	Reported string `json:"reported,omitempty"`
	Files    []File `json:"files"`
	// LeftOut are files that were too large for the snapshot, and are not compared.
	LeftOut []string `json:"leftOut,omitempty"`

	changes worktree.Changes
}

// File is a file that was changed.
type File struct {
	worktree.FileChange
	// Named says that a tool call of the session has changed it. Whether others did too is not
	// known.
	Named bool `json:"named,omitempty"`
}

// Lines returns the numbers of its lines that were added and removed.
func (f File) Lines() string {
	if f.Binary {
		return "binary"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Removed)
}

// Summary returns in a line how much was changed, and how that is known.
func (f Folder) Summary() string {
	summary := "nothing changed"
	if len(f.Files) > 0 {
		added, removed := 0, 0
		for _, file := range f.Files {
			added, removed = added+file.Added, removed+file.Removed
		}
		summary = fmt.Sprintf("%s, +%d -%d", text.Count(len(f.Files), "file", "files"),
			added, removed)
	}
	switch {
	case f.Reported != "":
		return summary + ", as tool calls reported: " + f.Reported
	case !f.Since.IsZero():
		summary += " since " + f.Since.Local().Format(time.DateTime)
	}
	if len(f.LeftOut) > 0 {
		summary += "; not compared, because they were too large: " +
			text.Line(text.Printable(strings.Join(f.LeftOut, ", ")), 300)
	}
	return summary
}

// Patch returns the changes as git prints them, "" if they are only reported.
func (f Folder) Patch(ctx context.Context) (string, error) {
	if f.Reported != "" {
		return "", nil
	}
	return f.changes.Patch(ctx)
}

// Hunks returns what has changed in each text file, by its path, as in [Folder.Patch].
func (f Folder) Hunks(ctx context.Context) (map[string]string, error) {
	patch, err := f.Patch(ctx)
	all := make(map[string]string)
	for file := range strings.SplitSeq("\n"+patch, "\ndiff --git ") {
		names, rest, _ := strings.Cut(file, "\n")
		name := names[(len(names)+1)/2:] // the second of a/NAME b/NAME
		if unquoted, err := strconv.Unquote(name); err == nil {
			name = unquoted
		}
		_, path, _ := strings.Cut(name, "/")
		if at := strings.Index(rest, "\n@@ "); at >= 0 {
			// += because a link that was a file has two.
			all[path] += strings.TrimSuffix(rest[at+1:], "\n") + "\n"
		}
	}
	return all, err
}

// OfTask returns what was changed in the worktrees of a task.
func OfTask(ctx context.Context, task worktree.Task) ([]Folder, error) {
	all := []Folder{}
	for _, r := range task.Repositories {
		f := Folder{Folder: r.Path, Files: []File{}}
		c, err := r.Compare(ctx)
		if err == nil {
			err = f.compare(ctx, c, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Printable(r.Path), err)
		}
		all = append(all, f)
	}
	return all, nil
}

// OfSession returns what was changed in the folders of a session since its first turn.
func OfSession(
	ctx context.Context, id sessionstore.ID, roots []workspace.Root,
	history iter.Seq2[sessionstore.Update, error], snapshots worktree.Snapshots,
) ([]Folder, error) {
	entries, err := conversation.Read(history)
	if err != nil {
		return nil, err
	}
	all, named := []Folder{}, namedIn(roots, Edits(entries))
	for i, root := range roots {
		if slices.ContainsFunc(roots[:i],
			func(r workspace.Root) bool { return r.Real == root.Real }) {
			continue
		}
		one := snapshots.Find(string(id), root.Recorded().String())
		f := Folder{Folder: root.Dir.String(), Since: one.Taken, Reported: one.Problem,
			LeftOut: one.LeftOut}
		if f.Reported == "" {
			c, err := one.Compare(ctx, nestedIn(roots, root)...)
			if err == nil {
				err = f.compare(ctx, c, named[i])
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				f.Reported = err.Error()
			}
		}
		if f.Reported != "" {
			f.Files = slices.AppendSeq([]File{}, maps.Values(named[i]))
			slices.SortFunc(f.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
		}
		all = append(all, f)
	}
	return all, nil
}

// compare sets the files that differ, and marks those that were named.
func (f *Folder) compare(ctx context.Context, c worktree.Changes, named map[string]File) error {
	files, err := c.Files(ctx)
	if err != nil {
		return err
	}
	f.changes, f.Files = c, []File{}
	for _, file := range files {
		_, ok := named[file.Path]
		f.Files = append(f.Files, File{file, ok})
	}
	return nil
}

// namedIn returns the files that were edited, for each root by their path in it.
func namedIn(roots []workspace.Root, edits []Edit) []map[string]File {
	all := make([]map[string]File, len(roots))
	for i := range all {
		all[i] = make(map[string]File)
	}
	for _, e := range edits {
		in, path := -1, ""
		for i, root := range roots {
			if rel := below(root, e.Path); rel != "" && (in < 0 || len(rel) < len(path)) {
				in, path = i, rel
			}
		}
		if in < 0 {
			continue
		}
		f := all[in][path]
		f.Path, f.Named = path, true
		f.Added, f.Removed = f.Added+e.Added, f.Removed+e.Removed
		all[in][path] = f
	}
	return all
}

// below returns the path that a file has in a root, with slashes, "" if it is not below it.
func below(root workspace.Root, path string) string {
	for _, dir := range []workspace.Dir{root.Dir, root.Real} {
		rel, err := filepath.Rel(dir.String(), path)
		if err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

// nestedIn returns the paths of the roots that lie in one of them.
func nestedIn(roots []workspace.Root, in workspace.Root) (paths []string) {
	for _, other := range roots {
		if rel := below(in, other.Real.String()); rel != "" {
			paths = append(paths, rel)
		}
	}
	return paths
}

// Edit describes what a finished tool call did to a file.
type Edit struct {
	Path           string
	Kind           byte // M, D or R
	Added, Removed int
}

// maxDiff is the longest text whose changed lines are counted.
const maxDiff = 64 << 10

// Edits returns what finished calls did to files, with those of subagents.
func Edits(entries []conversation.Entry) (all []Edit) {
	for _, e := range entries {
		if e.Subagent != nil {
			all = append(all, Edits(e.Subagent.Entries)...)
		}
		if e.Kind != conversation.ToolCall || e.Call.Status != "completed" {
			continue
		}
		for _, d := range e.Call.Diffs {
			edit := Edit{Path: d.Path, Kind: 'M'}
			if len(d.Old)+len(d.New) <= maxDiff {
				edit.Added, edit.Removed = conversation.Changed(d.Lines())
			}
			all = append(all, edit)
		}
		kind, ok := map[string]byte{"edit": 'M', "delete": 'D', "move": 'R'}[e.Call.Kind]
		if !ok || len(e.Call.Diffs) > 0 {
			continue
		}
		for _, path := range e.Call.Paths {
			all = append(all, Edit{Path: path, Kind: kind})
		}
	}
	return all
}
