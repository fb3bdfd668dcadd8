package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

type findFilesInput struct {
	Glob string `json:"glob,omitempty" jsonschema:"{glob}"`
	Path string `json:"path,omitempty" jsonschema:"a directory, {path}; {every}"`
	fileFilter
}

// fileFilter holds the arguments that exclude files from a walk.
type fileFilter struct {
	// Exclude is bounded, because each path is matched with all of it.
	Exclude []string `json:"exclude,omitempty" jsonschema:"globs to omit" max:"100"`
	Ignored string   `json:"ignored,omitempty" jsonschema:"{ignored}" enum:"leave_out,include"`
}

func (s *service) find(ctx context.Context, in findFilesInput) (Result, error) {
	p, root := page{bytes: s.limits.bytes, unit: "entries", most: s.limits.entries}, ""
	var out Result
	w, err := s.walk(ctx, in.Path, in.Glob, in.fileFilter, nil, func(f found) *truncation {
		at := locate(f.ref())
		line := text.Printable(at.below()) + "\n"
		if at.Root != root {
			line = fmt.Sprintf("in folder %s:\n%s", text.Printable(at.Root), line)
		}
		cut := p.add(1, at.Path, line)
		if cut == nil {
			out.Found, root = append(out.Found, FoundAt{Path: at.Path}), at.Root
		}
		return cut
	})
	notes := w.notes(p.last, "Use a narrower glob, or a path.")
	if len(out.Found) == 0 {
		out.Text = "No file matches; " + w.none(in.Glob) + notes
		return out, err
	}
	out.Text = fmt.Sprintf("%sfound %s, visited %d\n%s", p.String(),
		text.Count(p.count, "file", "files"), w.Visited, notes)
	return out, err
}

// notes tells a model about what is missing: after which part the result was cut, and how to see
// more.
func (w walked) notes(after, how string) string {
	if w.Cut != nil {
		w.Cut.After, w.Cut.How = after, how
	}
	return w.LeftOut.note() + w.Cut.note()
}

// none says what was visited by a walk that found nothing.
func (w walked) none(glob string) string {
	return text.Count(w.Visited, "file", "files") + " visited\n" + globHint(glob)
}

var errTimeLimit = errors.New("the time limit was reached")

// walk calls each with the files that the arguments of a tool describe, or if q is not nil with
// those that have matches, until it returns a limit, or the limit of time is reached. It leaves out
// names that are not Unicode text.
func (s *service) walk(
	ctx context.Context, path, only string, filter fileFilter, q *query,
	each func(found) *truncation,
) (walked, error) {
	w := walk{ws: s.own, path: path, leaveIgnored: filter.Ignored != "include", query: q, each: each}
	for _, given := range filter.Exclude {
		// which marks directories in .gitignore
		excluded, err := newGlob(strings.TrimSuffix(given, "/"))
		if err != nil {
			return walked{}, err
		}
		w.exclude = append(w.exclude, excluded)
	}
	if only != "" {
		glob, err := newGlob(only)
		if err != nil {
			return walked{}, err
		}
		w.only = glob
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeLimit)
	defer cancel()
	out, err := w.run(limited)
	if err != nil && !errors.Is(context.Cause(limited), errTimeLimit) {
		return out, err
	}
	if err != nil {
		out.Cut = &truncation{Unit: "ms", Limit: int(s.limits.time.Milliseconds())}
	}
	if out.Cut != nil {
		for _, root := range out.Unfinished {
			out.Cut.Roots = append(out.Cut.Roots, representable(root.Dir.String()))
		}
	}
	return out, nil
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
