package discovery

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/workspace"
)

// Stray is a file in a root whose name says that it is for agents, such as SKILL.md, in a place
// that no convention names.
type Stray struct {
	Root workspace.Root
	// Path is where it is, as the client spells the root.
	Path string
}

// Limits on the search for strays in one root. With higher ones it would take longer than the scan
// of a large root.
const (
	maxStrayDirs    = 400 // directories
	maxStrayEntries = 600 // of directories whose names are not in the table
)

// Strays searches the roots for strays from the top down, within limits. cut has the roots that it
// did not search completely. The error is the context's or [workspace.ErrClosed].
func (c *Catalog) Strays(ctx context.Context) (found []Stray, cut []workspace.Root, err error) {
	known := make(map[string]bool)
	for i := range c.artifacts {
		known[c.artifacts[i].Path] = true
	}
	roots := c.Roots()
	searches := make([]*straySearch, len(roots))
	errs := make([]error, len(roots))
	var running sync.WaitGroup
	for i, root := range roots {
		searches[i] = newStraySearch(newScanner(c.ws, root, c.limits), c.rows, known)
		running.Go(func() { errs[i] = searches[i].run(ctx) })
	}
	running.Wait()
	for i, s := range searches {
		if errs[i] != nil {
			return nil, nil, errs[i]
		}
		for _, rel := range s.found {
			found = append(found, Stray{roots[i], s.path(rel)})
		}
		if !s.complete {
			cut = append(cut, roots[i])
		}
	}
	return found, cut, nil
}

// straySearch is the search of one root.
type straySearch struct {
	*scanner
	known    map[string]bool // paths of artifacts
	names    []string        // patterns of the last names to look for
	covered  []string        // directories below which rows look everywhere
	nested   []string        // such directories that may be in any directory
	parts    []string        // names of directories that patterns contain
	found    []string
	complete bool
}

func newStraySearch(s *scanner, rows []row, known map[string]bool) *straySearch {
	search := &straySearch{scanner: s, known: known, complete: true}
	for _, r := range rows {
		last := r.names[len(r.names)-1]
		if r.Level != EveryDirectory &&
			(r.Format == SkillFile || r.Format == CopilotRule || r.Format == PromptFile) &&
			!slices.Contains(search.names, last) {
			search.names = append(search.names, last)
		}
		if r.Level == RootOnly && r.fixed < len(r.names) && r.names[r.fixed] == "**" {
			search.covered = append(search.covered, path.Join(r.names[:r.fixed]...))
		}
		if r.Level == EveryDirectory && r.Format == SkillFile {
			search.nested = append(search.nested, "/"+path.Join(r.names[:r.fixed]...))
		}
		search.parts = append(search.parts, r.names[:min(r.fixed, len(r.names)-1)]...)
	}
	return search
}

// run searches the root. Directories with names from the table come first, with all that is below
// them.
func (s *straySearch) run(ctx context.Context) error {
	type place struct {
		rel    string
		likely bool
	}
	likely, others := []place(nil), []place{{rel: "."}}
	entriesLeft := maxStrayEntries
	for range maxStrayDirs {
		var at place
		switch {
		case len(likely) > 0:
			at, likely = likely[0], likely[1:]
		case len(others) > 0 && entriesLeft > 0:
			at, others = others[0], others[1:]
		default:
			s.complete = s.complete && len(others) == 0
			return nil
		}
		entries, err := s.list(ctx, at.rel)
		if err != nil {
			return err
		}
		if !at.likely {
			entriesLeft -= len(entries)
		}
		for _, e := range entries {
			next := place{rel: join(at.rel, e.Name)}
			switch {
			case e.Type.IsDir() && (e.Name == ".git" || e.Name == "node_modules" ||
				s.isCovered(next.rel)):
			case e.Type.IsDir() && (at.likely || slices.Contains(s.parts, e.Name)):
				next.likely = true
				likely = append(likely, next)
			case e.Type.IsDir():
				others = append(others, next)
			case e.Type.IsRegular() && s.isTelling(e.Name) && !s.known[s.path(next.rel)]:
				s.found = append(s.found, next.rel)
			}
		}
	}
	s.complete = s.complete && len(likely)+len(others) == 0
	return nil
}

// isCovered reports whether rows look everywhere below a directory.
func (s *straySearch) isCovered(rel string) bool {
	return slices.Contains(s.covered, rel) || slices.ContainsFunc(s.nested,
		func(dir string) bool { return strings.HasSuffix("/"+rel, dir) })
}

// list returns the entries of a directory, none for the directory of a skill and for a directory
// that cannot be read.
func (s *straySearch) list(ctx context.Context, rel string) ([]workspace.Entry, error) {
	if rel != "." && s.known[s.path(join(rel, "SKILL.md"))] {
		return nil, nil
	}
	dir, err := s.ws.OpenDir(s.path(rel))
	if errors.Is(err, workspace.ErrClosed) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	defer dir.Close()
	entries, err := dir.Entries(ctx)
	s.complete = s.complete && err == nil // a very large directory is not listed completely
	return entries, context.Cause(ctx)
}

// isTelling reports whether a file with this name is meant for agents, whatever its directory.
func (s *straySearch) isTelling(name string) bool {
	if len(name) < 3 || !strings.EqualFold(path.Ext(name), ".md") { // as most are
		return false
	}
	return slices.ContainsFunc(s.names, func(pattern string) bool {
		return matches(pattern, name) || strings.EqualFold(pattern, name)
	})
}
