package sessionstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Keys are the paths by which a session is found.
type Keys struct {
	// Roots are the roots as the client spelled them, with their grants.
	Roots workspace.Roots
	// Real are the real paths of all roots when they were opened, in the same order, cwd first.
	// Duplicates are kept.
	Real []workspace.Dir
}

// Validate returns an error unless k has roots and a real path for each of them.
func (k Keys) Validate() error {
	switch {
	case k.Roots.IsZero():
		return errors.New("a session needs roots")
	case len(k.Real) != k.Roots.Len():
		return fmt.Errorf("%d roots have %d real paths", k.Roots.Len(), len(k.Real))
	case slices.ContainsFunc(k.Real, workspace.Dir.IsZero):
		return errors.New("a root has no real path")
	}
	return nil
}

// Opened returns the roots, k must be valid, as they were when they were opened.
func (k Keys) Opened() []workspace.Root {
	roots := make([]workspace.Root, len(k.Real))
	for i, dir := range k.Roots.All() {
		roots[i] = workspace.Root{Index: i, Dir: dir, Real: k.Real[i], Grant: k.Roots.Grant(dir)}
	}
	return roots
}

// WithCwd returns k, which must be valid, with cwd in another spelling of the same directory. An
// additional root with the same spelling is dropped, since roots contain no path twice.
func (k Keys) WithCwd(cwd workspace.Dir) Keys {
	real := []workspace.Dir{k.Real[0]}
	for i, dir := range k.Roots.Additional().All() {
		if dir != cwd {
			real = append(real, k.Real[i+1])
		}
	}
	roots := workspace.RootsFrom(cwd, k.Roots.Additional())
	return Keys{Real: real, Roots: roots.Granting(func(dir workspace.Dir) workspace.Grant {
		if dir == cwd {
			dir = k.Roots.Cwd()
		}
		return k.Roots.Grant(dir)
	})}
}
