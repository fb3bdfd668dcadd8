package discovery

import (
	"context"
	"reflect"
	"runtime"
	"sync"

	"github.com/acp-agent/acp-agent/workspace"
)

// Scan looks for artifacts in all roots of the workspace. Roots are searched at the same time, each within the
// bounds of the options. What is broken is in the catalog; the error is the context's, [workspace.ErrClosed],
// or a *[ConventionError]. The catalog reads through ws, which must stay open for it; Scan starts nothing and
// changes nothing (A25).
func Scan(ctx context.Context, ws *workspace.Workspace, o Options) (*Catalog, error) {
	o = o.withDefaults()
	rows, err := compile(o.Conventions)
	if err != nil {
		return nil, err
	}
	c := &Catalog{ws: ws, o: o, rows: rows, roots: make([]*findings, len(ws.Opened()))}
	return c.scanned(ctx, make([]*findings, len(c.roots)), nil)
}

// Rescan looks whether anything changed that the catalog depends on, and if so searches again: only roots in which
// something changed, and reading only files that are not certainly as they were. A change less than two seconds before
// it was seen is not trusted to be the last (times of files are coarse), so what is that young is read again.
//
// It returns the catalog as it is now, to be used from then on, and what differs. The receiver does not change. The
// error is the context's or [workspace.ErrClosed].
func (c *Catalog) Rescan(ctx context.Context) (*Catalog, Change, error) {
	now := &Catalog{ws: c.ws, o: c.o, rows: c.rows}
	keep, err := c.current(ctx)
	if err != nil {
		return nil, Same, err
	}
	if all(keep) {
		return c, Same, nil
	}
	now, err = now.scanned(ctx, c.roots, keep)
	if err != nil {
		return nil, Same, err
	}
	if reflect.DeepEqual(c.artifacts, now.artifacts) && reflect.DeepEqual(c.Cuts(), now.Cuts()) {
		return now, Same, nil
	}
	return now, Changed, nil
}

// Change says whether a rescan found anything else.
type Change int

// The changes.
const (
	// Same: every artifact is as it was.
	Same Change = iota
	// Changed: an artifact came, went, or is another.
	Changed
)

// current tells for each root whether its findings still hold. It looks at one root after the other: at several at the same
// time it would take the processors longer, and hardly less by the clock.
func (c *Catalog) current(ctx context.Context) ([]bool, error) {
	keep := make([]bool, len(c.roots))
	for i, root := range c.ws.Opened() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		keep[i] = newSearch(c.ws, root, c.o, nil).current(c.roots[i])
	}
	return keep, nil
}

// scanned fills c: with the old findings of roots to keep, and a search of the others.
func (c *Catalog) scanned(ctx context.Context, old []*findings, keep []bool) (*Catalog, error) {
	c.roots = make([]*findings, len(old))
	err := c.eachRoot(ctx, func(i int, root workspace.Root) (err error) {
		if keep != nil && keep[i] {
			c.roots[i] = old[i]
			return nil
		}
		c.roots[i], err = findingsOf(ctx, c.ws, root, c.rows, c.o, old[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	total := 0
	for _, f := range c.roots {
		total += len(f.artifacts)
	}
	c.artifacts = make([]Artifact, 0, total)
	for _, f := range c.roots {
		for _, a := range f.artifacts {
			c.artifacts = append(c.artifacts, *a)
		}
	}
	compete(c.artifacts)
	return c, nil
}

// eachRoot calls work for every root, some at the same time, and waits for all. The error is the first root's that
// failed.
func (c *Catalog) eachRoot(ctx context.Context, work func(i int, root workspace.Root) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	opened := c.ws.Opened()
	errs := make([]error, len(opened))
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, root := range opened {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			errs[i] = work(i, root)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func all(list []bool) bool {
	for _, ok := range list {
		if !ok {
			return false
		}
	}
	return true
}
