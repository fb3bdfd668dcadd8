package workspace

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// draftAge is how old a draft is before it is taken for one that was left behind.
const draftAge = 24 * time.Hour

// sweep removes drafts that processes which were killed have left in the directory of ref. A
// Workspace does that once for each directory. What was to change places with a file stays, because
// another program may have changed it. So does everything where the system has no locks.
func (w *Workspace) sweep(ctx context.Context, dir *dirfd.Dir, ref Ref) {
	if _, swept := w.swept.LoadOrStore(filepath.Dir(ref.Real()), true); swept {
		return
	}
	var names []string
	_ = dir.List(ctx, func(name string, kind fs.FileMode) bool {
		if isTemporary(name) && name[len(name)-1] != '-' && kind.IsRegular() {
			names = append(names, name)
		}
		return true
	})
	for _, name := range names {
		f, err := dir.OpenRegular(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && time.Since(info.ModTime()) > draftAge && dirfd.TryLock(f) == nil {
			_ = dir.Remove(name)
		}
		_ = f.Close()
	}
}
