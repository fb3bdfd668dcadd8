package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// draftAge is how old a draft is before it is taken for one that was left behind.
const draftAge = 24 * time.Hour

// sweep removes what processes that were killed have left in the directory of ref. A Workspace does
// that once for each directory.
func (w *Workspace) sweep(ctx context.Context, dir *dirfd.Dir, ref Ref) {
	if _, swept := w.swept.LoadOrStore(filepath.Dir(ref.Real()), true); swept {
		return
	}
	var names []string
	_ = dir.List(ctx, make([]byte, dirfd.ListBuffer), func(name string, kind fs.FileMode) bool {
		if isTemporary(name) && kind.IsRegular() {
			names = append(names, name)
		}
		return true
	})
	for _, name := range names {
		removeLeft(dir, name)
	}
}

// removeLeft removes a draft that no process holds. Where the system has no locks, it removes none.
func removeLeft(dir *dirfd.Dir, name string) {
	f, err := dir.OpenRegular(name)
	if err != nil {
		return
	}
	defer f.Close()
	if dirfd.TryLock(f) == nil && isLeft(f, name) {
		_ = dir.Remove(name)
	}
}

// isLeft reports whether a draft, which nobody has locked, is of no use any more. One that was to
// change places with a file may have become that file, which another program may have changed: it
// must be one of the versions in its name.
func isLeft(f *os.File, name string) bool {
	info, err := f.Stat()
	if err != nil || info.Size() > maxWrite {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(name, temporaryPrefix), "-")
	if len(parts) == 1 {
		return time.Since(info.ModTime()) > draftAge
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(f, maxWrite+1)); err != nil {
		return false
	}
	return slices.Contains(parts[1:], shortSum(hash.Sum(nil)))
}

// exchangeName returns the name of a draft that changes places with a file: it says which versions
// are of no use once the process has ended. There are none if the draft is not locked, because
// another process could not tell.
func exchangeName(locked bool, versions ...Version) string {
	name := temporaryName() + "-"
	if !locked {
		return name
	}
	for i, v := range versions {
		if i > 0 {
			name += "-"
		}
		name += shortSum(v.sum[:])
	}
	return name
}

// shortSum returns the beginning of a hash for a name.
func shortSum(sum []byte) string {
	return base32.StdEncoding.EncodeToString(sum[:10])
}
