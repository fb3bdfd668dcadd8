package dirfd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// Clause C1.
func TestNames(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(top, "f"), nil, 0o600))
	d := open(t, top)
	for _, name := range []string{"", "..", "../out/secret", "d/e", "/etc/passwd", "d/..", "/"} {
		errs := map[string]error{}
		_, errs["OpenDir"] = d.OpenDir(name)
		_, errs["OpenDirToList"] = d.OpenDirToList(name)
		_, errs["Stat"] = d.Stat(name)
		_, errs["Lstat"] = d.Lstat(name)
		_, errs["Open"] = d.Open(name)
		_, errs["OpenRegular"] = d.OpenRegular(name)
		_, errs["create"] = d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		_, errs["Readlink"] = d.Readlink(name)
		errs["Mkdir"] = d.Mkdir(name, 0o700)
		errs["Remove"] = d.Remove(name)
		errs["Rename from"] = d.Rename(name, d, "x")
		errs["Rename to"] = d.Rename("f", d, name)
		errs["Link from"] = d.Link(name, "x")
		errs["Link to"] = d.Link("f", name)
		for method, err := range errs {
			require.ErrorIs(t, err, syscall.EINVAL, "%s %q", method, name)
		}
	}
}

func TestListAndRename(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(top, "d/e"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(top, "f"), []byte("text"), 0o600))
	d := open(t, top)
	sub, err := d.OpenDirToList("d")
	require.NoError(t, err)
	defer sub.Close()
	require.NoError(t, d.Rename("f", sub, "g"))
	for range 2 { // a directory can be listed again
		var names []string
		require.NoError(t, sub.List(context.Background(), func(name string, kind fs.FileMode) bool {
			require.Equal(t, name == "e", kind.IsDir())
			names = append(names, name)
			return true
		}))
		slices.Sort(names)
		require.Equal(t, []string{"e", "g"}, names)
	}
	f, err := sub.OpenRegular("g")
	require.NoError(t, err)
	defer f.Close()
	content, info, err := ReadFile(f, nil, 10)
	require.NoError(t, err)
	require.Equal(t, "text", string(content))
	require.EqualValues(t, 4, info.Size())
	path, err := sub.RealPath(filepath.Join(top, "d"))
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(filepath.Join(top, "d"))
	require.NoError(t, err)
	require.Equal(t, real, path)
}

// blockAll is a Guard that blocks every directory.
type blockAll struct{}

var errBlocked = errors.New("blocked")

func (blockAll) CheckMount(MountID) error { return nil }
func (blockAll) CheckDir(FileStat) error  { return errBlocked }

func TestBlockedDirectoriesAreOnlyPassedThrough(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(top, "d/e"), 0o700))
	d := open(t, top)
	d.SetGuard(blockAll{})
	_, err := d.Lstat("d")
	require.NoError(t, err)
	sub, err := d.OpenDir("d")
	require.NoError(t, err)
	defer sub.Close()
	require.ErrorIs(t, sub.Blocked(), errBlocked)
	_, err = sub.Stat("e")
	require.ErrorIs(t, err, errBlocked)
	require.ErrorIs(t, sub.Remove("e"), errBlocked)
	below, err := sub.OpenDir("e")
	require.NoError(t, err)
	require.NoError(t, below.Close())
}
