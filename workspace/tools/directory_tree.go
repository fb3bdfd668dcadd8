package tools

import (
	"cmp"
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

type directoryTreeInput struct {
	Path  string `json:"path,omitempty" jsonschema:"{path}; {every}"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels to show; default 3" min:"1"`
	fileFilter
}

const defaultTreeDepth = 3

func (s *service) tree(ctx context.Context, in directoryTreeInput) (Result, error) {
	if in.Path != "" {
		dir, err := s.checked.OpenDir(in.Path) // a walk takes files as well
		if err != nil {
			return Result{}, err
		}
		_ = dir.Close()
	}
	p := treePrinter{page: page{bytes: s.limits.bytes, unit: "entries", most: s.limits.entries},
		depth: cmp.Or(in.Depth, defaultTreeDepth)}
	w, err := s.walk(ctx, in.Path, "", in.fileFilter, nil, p.file)
	p.endLine()
	return Result{Text: p.String() + text.Count(w.Visited, "file", "files") + "\n" +
		w.notes("", "Use a path, a smaller depth, or exclude.")}, err
}

// treePrinter prints a tree of the files of a walk, in whose order a directory's files come before
// its subdirectories.
type treePrinter struct {
	page
	depth int

	top    string   // of the last file
	open   []string // the names of the directories that the last file is in, from the top
	hidden int      // the number of files below the directory of the last line
}

// file prints a file, and the directories it is in. It returns the limit that is reached, or nil.
func (p *treePrinter) file(f found) *truncation {
	if p.top != f.in.top {
		p.top, p.open = f.in.top, nil
		if cut := p.line(0, p.top+"/"); cut != nil {
			return cut
		}
	}
	var dirs []string
	if f.in.Below != "" {
		dirs = strings.Split(f.in.Below, "/")
	}
	same := 0
	for same < min(len(dirs), len(p.open), p.depth) && dirs[same] == p.open[same] {
		same++
	}
	p.open = dirs
	for _, name := range dirs[same:min(len(dirs), p.depth)] {
		same++
		if cut := p.line(same, name+"/"); cut != nil {
			return cut
		}
	}
	if len(dirs) < p.depth {
		return p.line(len(dirs)+1, f.name)
	}
	p.hidden++
	return nil
}

// line begins a line with a name. depth is 0 for the directory at the top.
func (p *treePrinter) line(depth int, name string) *truncation {
	p.endLine()
	return p.add(1, "", strings.Repeat("  ", depth)+text.Printable(name))
}

// endLine ends the last line.
func (p *treePrinter) endLine() {
	if p.hidden > 0 {
		p.WriteString(" (" + text.Count(p.hidden, "file", "files") + ")")
		p.hidden = 0
	}
	if p.Len() > 0 && !strings.HasSuffix(p.String(), "\n") {
		p.WriteString("\n")
	}
}
