package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
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
	out.walked, err = s.walk(ctx, in.Path, in.Glob, in.fileFilter, nil, func(f found) *truncation {
		location, root := locate(f.ref()), ""
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

// notes tells a model about what is missing.
func (w walked) notes() string { return w.LeftOut.note() + w.Cut.note() }

// none says what was visited by a walk that found nothing.
func (w walked) none(glob string) string {
	return text.Count(w.Visited, "file", "files") + " visited\n" + globHint(glob) + w.notes()
}

var errTimeLimit = errors.New("the time limit was reached")

// walk calls each with the files that the arguments of a tool describe, or if q is not nil with
// those that have matches, until it returns a limit, or the limit of time is reached. It leaves out
// names that are not Unicode text.
func (s *Set) walk(ctx context.Context, path, only string, filter fileFilter, q *query,
	each func(found) *truncation) (_ walked, err error) {
	w := walk{ws: s.walked, path: path, leaveIgnored: filter.Ignored != "include", query: q}
	for _, given := range filter.Exclude {
		// which marks directories in .gitignore
		excluded, err := newGlob(strings.TrimSuffix(given, "/"))
		if err != nil {
			return w.walked, err
		}
		w.exclude = append(w.exclude, excluded)
	}
	if only != "" {
		if w.only, err = newGlob(only); err != nil {
			return w.walked, err
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeLimit)
	defer cancel()
	w.each = func(f found) bool {
		if !utf8.ValidString(f.ref().Path()) {
			w.LeftOut.unnameable++
			return true
		}
		w.Cut = each(f)
		return w.Cut == nil
	}
	err = w.run(limited)
	if err != nil && !errors.Is(context.Cause(limited), errTimeLimit) {
		return w.walked, err
	}
	if err != nil {
		w.Cut = cmp.Or(w.Cut, s.limits.reached("time"))
	}
	if w.Cut != nil {
		for i, finished := range w.finished {
			if !finished {
				w.Cut.Roots = append(w.Cut.Roots, representable(s.ws.Roots().At(i).String()))
			}
		}
	}
	return w.walked, nil
}

// globHint returns a line about brackets in a glob that has found nothing, "" for other globs.
func globHint(glob string) string {
	open := strings.IndexByte(glob, '[')
	if open < 0 || open > 0 && glob[open-1] == '\\' {
		return ""
	}
	set := glob[open : open+text.GlobSetEnd(glob[open:])+1]
	return fmt.Sprintf("[%s stands for one of these characters: write \\%s\\] for a name with "+
		"brackets]\n", text.Printable(set), text.Printable(strings.TrimSuffix(set, "]")))
}

func (f foundFiles) String() string {
	if len(f.Files) == 0 {
		return "No file matches; " + f.none(f.Glob)
	}
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
	return b.String() + f.notes()
}
