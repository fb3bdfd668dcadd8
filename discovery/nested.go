package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// For are the instructions about path beyond those of whole roots: files in the directories between the root that owns
// path (of nested roots the deepest) and path, from the root down, and rules whose globs match path. The file itself
// need not exist. Files are looked for when it is called. What does not count is in the list, with its reason. So is what a
// bound left out: an invalid artifact whose Name is the convention, whose Path is where the search ended, and whose
// Reason names the bound.
//
// [Catalog.Assemble] makes one text of the list. The error is that of a path
// outside of the roots, the context's, or that [Options].Timeout is over.
func (c *Catalog) For(ctx context.Context, path string) ([]Artifact, error) {
	t, err := c.touch(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, errTimeout)
	defer cancel()
	found, err := c.below(ctx, t)
	if err != nil {
		return nil, err
	}
	var list []Artifact
	for _, a := range c.Of(Instruction) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if a.Root.Index == t.root.Index && a.Applies.Mode == ByPath && a.applyTo(t) {
			list = append(list, a)
		}
	}
	for _, a := range found {
		if a.Applies.Mode != ByPath || a.applyTo(t) {
			list = append(list, a)
		}
	}
	return list, nil
}

// touched is a path that somebody works on.
type touched struct {
	root workspace.Root
	dirs []string // the directories from the root to where it is
	rel  string   // the path itself, slash-separated from the root
}

// touch finds the deepest directory on the way to path.
func (c *Catalog) touch(path string) (touched, error) {
	var missing string
	for {
		dir, err := c.ws.OpenDir(path)
		if err == nil {
			ref := dir.Ref()
			_ = dir.Close()
			t := touched{root: ref.Root(), rel: strings.TrimPrefix(ref.Rel()+missing, "./")}
			if ref.Rel() != "." {
				t.dirs = strings.Split(ref.Rel(), "/")
			}
			return t, nil
		}
		up := filepath.Dir(path)
		if up == path || (!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)) {
			return touched{}, err
		}
		missing = "/" + filepath.Base(path) + missing
		path = up
	}
}

// below searches the directories below the root.
func (c *Catalog) below(ctx context.Context, t touched) ([]Artifact, error) {
	var rows []row
	for _, r := range c.rows {
		if r.Level == EveryDirectory {
			rows = append(rows, r)
		}
	}
	s := newScanner(c.ws, t.root, c.o)
	defer s.close()
	top, err := c.ws.OpenDir(t.root.Dir.String())
	if err != nil {
		return nil, err
	}
	at := newDirectory(top, nil, ".")
	defer func() {
		for ; at != nil; at = at.parent {
			_ = at.dir.Close()
		}
	}()
	var all []Artifact
	for _, name := range t.dirs {
		dir, err := at.dir.OpenDir(name)
		if err != nil {
			break // it went away just now
		}
		at = newDirectory(dir, at, name)
		s.artifacts = nil
		s.scanDir(ctx, rows, at)
		all = append(all, c.once(s.artifacts)...)
	}
	for _, cut := range s.cuts {
		all = append(all, s.notSearched(cut))
	}
	return all, context.Cause(ctx)
}

// notSearched is what a bound left out, as an artifact that does not count.
func (s *scanner) notSearched(c Cut) Artifact {
	a := s.artifact(row{Convention: Convention{Place: c.Place}}, ".")
	a.Name, a.Path = c.Place, c.At
	a.invalid(c.String())
	return a
}

// once lets the artifacts of one directory compete with each other, and gives up those that the catalog has.
func (c *Catalog) once(found []*Artifact) []Artifact {
	slices.SortStableFunc(found, byRank)
	list := make([]Artifact, len(found))
	for i, a := range found {
		list[i] = *a
	}
	resolveConflicts(list)
	for i := range list {
		a := &list[i]
		for j := range c.artifacts {
			if known := &c.artifacts[j]; a.State == Active && known.Kind == a.Kind && known.Ref.Rel() != "" && known.Ref == a.Ref {
				a.shadow(known, fmt.Sprintf("it is the same file as %s, which root %d has", known.Path, known.Root.Index))
			}
		}
	}
	return list
}

// applyTo reports whether the globs match the path, from the directory that the rule is for.
func (a Artifact) applyTo(t touched) bool {
	rel := t.rel
	if a.level != "." {
		rel = strings.TrimPrefix(rel, a.level+"/")
	}
	return a.Applies.matches(rel)
}
