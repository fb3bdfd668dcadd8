package workspace

import (
	"context"
	"syscall"
)

// RenameByCopy is Rename as if the two paths were on different file systems.
func (w *Workspace) RenameByCopy(ctx context.Context, from, to string, o RenameOptions) (Ref, error) {
	return w.rename(ctx, from, to, o, func(*Workspace, slot, slot, Create) error { return syscall.EXDEV })
}
