package discovery

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// hunt is the search for one row.
type hunt struct {
	*search
	row   row
	level *place // whose instructions they are
	base  *place // the directory that the row names; names of commands begin below it
}

// find looks in at for the rest of the row's names. It reports whether the last of them, a plain one, is there.
func (h *hunt) find(ctx context.Context, at *place, names []string, depth int) bool {
	switch name := names[0]; {
	case name == "**":
		h.below(ctx, at, names, depth)
	case !isGlob(name) && len(names) == 1:
		e, err := at.entry(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if err != nil {
			h.unreadable(h.row, at, name, err)
			return true
		}
		return h.file(ctx, at, e)
	case !isGlob(name):
		h.into(ctx, at, workspace.Entry{Name: name, Type: fs.ModeDir}, names[1:], depth)
	default:
		h.each(ctx, at, func(e workspace.Entry) {
			if match, _ := path.Match(name, e.Name); !match {
				return
			}
			if len(names) > 1 {
				h.into(ctx, at, e, names[1:], depth)
			} else if !e.Type.IsDir() {
				h.file(ctx, at, e)
			}
		})
	}
	return false
}

// below looks for the names after "**" in at and all directories below it. A plain file name is recognised in any case,
// because its author's file system may not tell.
func (h *hunt) below(ctx context.Context, at *place, names []string, depth int) {
	last := len(names) == 2
	h.each(ctx, at, func(e workspace.Entry) {
		switch {
		case last && !e.Type.IsDir() && isNamed(e.Name, names[1]):
			h.file(ctx, at, e)
		case depth < h.o.MaxDepth:
			h.into(ctx, at, e, names, depth+1)
		case e.Type.IsDir():
			h.cut(h.row, join(at.rel, e.Name), "MaxDepth", int64(h.o.MaxDepth))
		}
	})
	if !last {
		h.find(ctx, at, names[1:], depth)
	}
}

// isNamed reports whether name is what pattern, or a plain name, stands for.
func isNamed(name, pattern string) bool {
	match, _ := path.Match(pattern, name)
	return match || strings.EqualFold(name, pattern)
}

// each calls visit with the entries of at that patterns stand for.
func (h *hunt) each(ctx context.Context, at *place, visit func(workspace.Entry)) {
	entries, err := at.list(ctx)
	var limit *workspace.LimitError
	switch {
	case err == nil:
	case errors.As(err, &limit):
		h.cut(h.row, at.rel, "MaxEntries", limit.Limit)
	default:
		if !h.spent(ctx, h.row) && at.up != nil {
			h.unreadable(h.row, at.up, path.Base(at.rel), err)
		}
		return
	}
	for _, e := range entries {
		if skipped(e.Name) {
			continue
		}
		if h.spent(ctx, h.row) {
			return
		}
		visit(e)
	}
}

// into goes on in the entry e of at, if that is a directory, or a link to one.
func (h *hunt) into(ctx context.Context, at *place, e workspace.Entry, names []string, depth int) {
	link := e.Type&fs.ModeSymlink != 0
	if !link && !e.Type.IsDir() {
		return
	}
	if h.dirs == h.o.MaxDirs {
		h.cut(h.row, at.rel, "MaxDirs", int64(h.o.MaxDirs))
		return
	}
	h.dirs++
	dir, err := at.dir.OpenDir(e.Name)
	if err != nil {
		// In a root's own directory there is much that is nobody's artifact.
		ours := h.base != h.level && !errors.Is(err, syscall.ENOTDIR)
		switch {
		case isGone(e, err):
			h.watchEntry(at, e.Name)
		case ours:
			h.unreadable(h.row, at, e.Name, err)
		}
		return
	}
	defer dir.Close()
	next := h.place(dir, at, e.Name)
	if link {
		h.watchEntry(at, e.Name)
		if up := next.above(); up != nil {
			a := h.artifact(h.row, next.rel)
			a.invalid("it is a link back to " + h.path(up.rel) + ", which is being searched already")
			h.add(a)
			return
		}
	}
	if !h.find(ctx, next, names, depth) && len(names) == 1 && !isGlob(names[0]) {
		next.watchLook(names[0], workspace.Look{})
	}
}
