package tools

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

type directoryTreeInput struct {
	Path  string `json:"path,omitempty" jsonschema:"PATH; EVERY"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels to show; default 3" min:"1"`
	fileFilter
}

const defaultTreeDepth = 3

// treeLine is a file or directory of a tree.
type treeLine struct {
	text  string
	files int // for a directory whose content is not shown: the number of files below it
}

func (s *Set) tree(ctx context.Context, in directoryTreeInput) (plain, error) {
	if in.Path != "" {
		dir, err := s.ws.OpenDir(in.Path) // a walk takes files as well
		if err != nil {
			return "", err
		}
		_ = dir.Close()
	}
	p := treePrinter{limits: s.limits, depth: cmp.Or(in.Depth, defaultTreeDepth)}
	w, err := s.walk(ctx, in.Path, "", in.fileFilter, nil, p.add)
	if w.Cut != nil {
		w.Cut.How = "Use a path, a smaller depth, or exclude."
	}
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l.text)
		if l.files > 0 {
			b.WriteString(" (" + text.Count(l.files, "file", "files") + ")")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\n%s", text.Count(w.Visited, "file", "files"), w.notes())
	return plain(b.String()), err
}

// treePrinter makes the lines of a tree from the files of a walk, in whose order a directory's
// files come before its subdirectories.
type treePrinter struct {
	limits limits
	depth  int

	lines []treeLine
	bytes int         // of the lines
	full  *truncation // the limit that was reached, nil for none
	top   string      // of the last file
	open  []string    // the names of the directories that the last file is in, from the top
}

// add adds a file, and the directories it is in. It returns the limit that is reached, or nil.
func (p *treePrinter) add(f found) *truncation {
	if p.top != f.in.top {
		p.top, p.open = f.in.top, nil
		p.line(0, p.top, "/")
	}
	var dirs []string
	if f.in.Below != "" {
		dirs = strings.Split(f.in.Below, "/")
	}
	same := 0
	for same < min(len(dirs), len(p.open), p.depth) && dirs[same] == p.open[same] {
		same++
	}
	for _, name := range dirs[same:min(len(dirs), p.depth)] {
		same++
		p.line(same, name, "/")
	}
	p.open = dirs
	if len(dirs) < p.depth {
		p.line(len(dirs)+1, f.name, "")
	} else if p.full == nil {
		p.lines[len(p.lines)-1].files++
	}
	return p.full
}

// line adds a line for a name, with its sign, if the limits allow. depth is 0 for the directory at
// the top.
func (p *treePrinter) line(depth int, name, sign string) {
	l := treeLine{text: strings.Repeat("  ", depth) + text.Printable(name) + sign}
	p.bytes += len(l.text) + len("\n")
	switch {
	case p.full != nil:
	case len(p.lines) == p.limits.entries:
		p.full = p.limits.reached("entries")
	case p.bytes > p.limits.bytes:
		p.full = p.limits.reached("bytes")
	default:
		p.lines = append(p.lines, l)
	}
}
