package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/workspace"
)

// change is what a finished call did to a file.
type change struct {
	path           string
	kind           byte // M, D or R
	added, removed int
	new            string // a part that the file has then, or ""
}

// maxDiff is the longest text whose changed lines are counted.
const maxDiff = 64 << 10

// changes returns what the finished calls of a turn did to files.
func changes(entries []conversation.Entry) (all []change) {
	for _, e := range entries {
		if e.Kind != conversation.ToolCall || e.Call.Status != "completed" {
			continue
		}
		for _, d := range e.Call.Diffs {
			all = append(all, changeBy(d))
		}
		kind, ok := map[string]byte{"edit": 'M', "delete": 'D', "move": 'R'}[e.Call.Kind]
		if !ok || len(e.Call.Diffs) > 0 {
			continue
		}
		for _, path := range e.Call.Paths {
			all = append(all, change{path: path, kind: kind})
		}
	}
	return all
}

// changeBy returns what a diff changed. Of a long one it does not compare the text.
func changeBy(d conversation.Diff) change {
	c := change{path: d.Path, kind: 'M'}
	if len(d.Old)+len(d.New) > maxDiff {
		return c
	}
	c.new = d.New
	for _, line := range d.Lines() {
		switch line[0] {
		case '+':
			c.added++
		case '-':
			c.removed++
		}
	}
	return c
}

// changedFiles returns the last state of each changed file, the newest first.
func (r *record) changedFiles() (files []change) {
	at := make(map[string]int)
	for _, t := range r.turns {
		for _, c := range t.files {
			if i, known := at[c.path]; known {
				c.added, c.removed = c.added+files[i].added, c.removed+files[i].removed
				files[i].path = "" // it moves to the end
			}
			at[c.path] = len(files)
			files = append(files, c)
		}
	}
	files = slices.DeleteFunc(files, func(c change) bool { return c.path == "" })
	slices.Reverse(files)
	return files
}

// describe returns a line about c, and compares the file with the disk if it lies in a folder of w,
// which may be nil.
func (c change) describe(w *workspace.Workspace) string {
	line := string(c.kind) + " " + shownPath(c.path, w)
	if c.added+c.removed > 0 {
		line += fmt.Sprintf(" +%d -%d", c.added, c.removed)
	}
	if state := c.state(w); state != "" {
		line += " (" + state + ")"
	}
	return line
}

// shownPath returns a path relative to the session's folder, which it begins with.
func shownPath(path string, w *workspace.Workspace) string {
	if w == nil {
		return path
	}
	for i, root := range w.Opened() {
		for _, dir := range []string{root.Dir.String(), root.Real.String()} {
			rel, err := filepath.Rel(dir, path)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			if i == 0 {
				return filepath.ToSlash(rel)
			}
			return w.Labels()[i] + "/" + filepath.ToSlash(rel)
		}
	}
	return path
}

// state compares the file with the disk.
func (c change) state(w *workspace.Workspace) string {
	const most = 1 << 20
	if w == nil {
		return ""
	}
	f, err := w.Open(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.kind == 'D':
		return "as left"
	case errors.Is(err, fs.ErrNotExist):
		return "gone"
	case err != nil:
		return ""
	}
	defer f.Close()
	if c.kind == 'D' {
		return "there again"
	}
	if c.new == "" {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil || len(content) > most:
		return ""
	case bytes.Contains(content, []byte(strings.TrimSpace(c.new))):
		return "as left"
	}
	return "changed since"
}
