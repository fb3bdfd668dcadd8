package sessionstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Keys are what a session is found by (clause A17).
type Keys struct {
	// Roots is the root set as the client spelled it.
	Roots workspace.Roots
	// Real is the same set by real paths when it was opened: the same length and order
	// as Roots with its duplicates kept, cwd first.
	Real []workspace.Dir
}

// Validate returns an error unless k has roots, and a real path for each of them.
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

// WithCwd returns valid k with cwd in another spelling of the same directory. An additional root that is
// spelled so too is dropped with its real path, as A7 asks.
func (k Keys) WithCwd(cwd workspace.Dir) Keys {
	real := []workspace.Dir{k.Real[0]}
	for i, dir := range k.Roots.Additional().All() {
		if dir != cwd {
			real = append(real, k.Real[i+1])
		}
	}
	return Keys{Roots: workspace.RootsFrom(cwd, k.Roots.Additional()), Real: real}
}
