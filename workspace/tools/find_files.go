package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type findFilesInput struct {
	Glob string `json:"glob,omitempty" jsonschema:"GLOB"`
	Path string `json:"path,omitempty" jsonschema:"a directory, PATH; EVERY"`
	fileFilter
}

// fileFilter holds the arguments that exclude files from a walk.
type fileFilter struct {
	// Exclude is bounded, because each path is matched with all of it.
	Exclude []string `json:"exclude,omitempty" jsonschema:"globs to omit" max:"100"`
	Ignored string   `json:"ignored,omitempty" jsonschema:"IGNORED" enum:"leave_out,include"`
}

type foundFiles struct {
	Glob  string
	Files []location
	walked
}

func (s *Set) find(ctx context.Context, in findFilesInput) (foundFiles, error) {
	out := foundFiles{Glob: in.Glob, Files: []location{}}
	room := s.limits.bytes
	var err error
	out.walked, err = s.walk(ctx, in.Path, in.Glob, in.fileFilter, nil, func(f Found) *truncation {
		location, root := locate(f.Ref()), ""
		if n := len(out.Files); n > 0 {
			root = out.Files[n-1].Root
		}
		if room -= len(location.below()); location.Root != root {
			room -= len(location.Root)
		}
		switch {
		case len(out.Files) == s.limits.entries:
			return s.limits.reached("entries")
		case room < 0:
			return s.limits.reached("bytes")
		}
		out.Files = append(out.Files, location)
		return nil
	})
	if out.Cut != nil {
		out.Cut.How = "Use a narrower glob, or a path."
		if n := len(out.Files); n > 0 {
			out.Cut.After = out.Files[n-1].Path
		}
	}
	return out, err
}

// walked counts what a walk of a tool visited, left out, and did not visit.
type walked struct {
	Visited int
	LeftOut Skipped
	Cut     *truncation
}

// notes tells a model about what is missing.
func (w walked) notes() string { return w.LeftOut.note() + w.Cut.note() }

var errTimeLimit = errors.New("the time limit was reached")

// walk calls each with the files that the arguments of a tool describe, or if o is not nil with those
// that have matches, until it returns a limit, or the limit of time or of files is reached. It leaves
// out names that are not Unicode text.
func (s *Set) walk(ctx context.Context, path, glob string, filter fileFilter, o *SearchOptions,
	each func(Found) *truncation) (out walked, err error) {
	walk := Walk{Workspace: s.walked, Path: path, Ignored: workspace.LeaveIgnored,
		MaxFiles: s.limits.files}
	if filter.Ignored == "include" {
		walk.Ignored = workspace.KeepIgnored
	}
	for _, pattern := range filter.Exclude {
		// which marks directories in .gitignore
		excluded, err := NewGlob(strings.TrimSuffix(pattern, "/"))
		if err != nil {
			return out, err
		}
		walk.Exclude = append(walk.Exclude, excluded)
	}
	if glob != "" {
		if walk.Only, err = NewGlob(glob); err != nil {
			return out, err
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeLimit)
	defer cancel()
	tally, err := walk.Run(limited, o, func(f Found) error {
		if !utf8.ValidString(f.Ref().Path()) {
			out.LeftOut.unnameable++
			return nil
		}
		if out.Cut = each(f); out.Cut != nil {
			return fs.SkipAll
		}
		return nil
	})
	switch {
	case err != nil && errors.Is(context.Cause(limited), errTimeLimit):
		out.Cut = cmp.Or(out.Cut, s.limits.reached("time"))
	case err != nil:
		return out, err
	case tally.Full:
		out.Cut = cmp.Or(out.Cut, s.limits.reached("files"))
	}
	if out.Cut != nil {
		out.Cut.Roots = s.unfinished(tally)
	}
	tally.Skipped.unnameable = out.LeftOut.unnameable
	out.Visited, out.LeftOut = tally.Files, tally.Skipped
	return out, nil
}

// unfinished returns the roots that a walk did not visit to the end.
func (s *Set) unfinished(tally Tally) []string {
	var paths []string
	for i, coverage := range tally.Roots {
		if coverage < Incomplete {
			paths = append(paths, representable(s.ws.Roots().At(i).String()))
		}
	}
	return paths
}

// GlobHint returns a line about brackets in a glob that has found nothing, "" for other globs.
func GlobHint(glob string) string {
	open := strings.IndexByte(glob, '[')
	if open < 0 || open > 0 && glob[open-1] == '\\' {
		return ""
	}
	set := glob[open : open+text.GlobSetEnd(glob[open:])+1]
	return fmt.Sprintf("[%s stands for one of these characters: write \\%s\\] for a name with brackets]\n",
		text.Printable(set), text.Printable(strings.TrimSuffix(set, "]")))
}

func (f foundFiles) String() string {
	var b strings.Builder
	root := ""
	for _, file := range f.Files {
		if file.Root != root {
			root = file.Root
			fmt.Fprintf(&b, "in folder %s:\n", text.Printable(root))
		}
		b.WriteString(text.Printable(file.below()) + "\n")
	}
	fmt.Fprintf(&b, "found %s, visited %d\n", text.Count(len(f.Files), "file", "files"), f.Visited)
	if len(f.Files) == 0 {
		b.WriteString(GlobHint(f.Glob))
	}
	return b.String() + f.notes()
}
