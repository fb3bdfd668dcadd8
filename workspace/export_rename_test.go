package workspace

import (
	"context"
	"syscall"
)

// RenameByCopy is Rename as if the two paths were on different file systems.
func (w *Workspace) RenameByCopy(ctx context.Context, from, to string, o RenameOptions) (Ref, error) {
	return w.RenameByCopyAnd(ctx, from, to, o, func() error { return nil })
}

// RenameByCopyAnd is RenameByCopy that calls last before the copy gets its name, and fails if that does.
func (w *Workspace) RenameByCopyAnd(ctx context.Context, from, to string, o RenameOptions, last func() error) (Ref, error) {
	copied := false
	return w.rename(ctx, from, to, o, func(w *Workspace, from, to slot, create Create) error {
		if !copied {
			copied = true
			return syscall.EXDEV
		}
		if err := last(); err != nil {
			return err
		}
		return move(w, from, to, create)
	})
}
