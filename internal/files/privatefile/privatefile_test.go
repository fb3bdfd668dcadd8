package privatefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(state)
	path := filepath.Join(state, "allowed", "one")
	if err := privatefile.WriteFile(path, []byte("yes")); err != nil {
		panic(err)
	}
	content, err := os.ReadFile(path)
	fmt.Println(string(content), err, privatefile.Remove(path))
	// Output: yes <nil> <nil>
}

// requirePermissions checks the permissions of a file, on systems that have them.
func requirePermissions(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Clause A25.
func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "allowed")
	path := filepath.Join(dir, "one")
	require.NoError(t, privatefile.WriteFile(path, []byte("first")))
	requirePermissions(t, path, 0o600)
	requirePermissions(t, dir, 0o700)

	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, privatefile.WriteFile(path, []byte("second")))
	requirePermissions(t, path, 0o600)
	requirePermissions(t, dir, 0o700)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(content))
	require.Equal(t, []string{"one"}, names(t, dir))
}

func TestWriteFileReplacesLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "private", "one")
	require.NoError(t, os.WriteFile(target, []byte("theirs"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	if err := os.Symlink(target, path); err != nil {
		t.Skip("links cannot be created:", err)
	}
	require.NoError(t, privatefile.WriteFile(path, []byte("ours")))
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Dir(path), link))
	require.ErrorIs(t, privatefile.WriteFile(filepath.Join(link, "two"), nil), syscall.ENOTDIR)
	require.Equal(t, []string{"one"}, names(t, filepath.Dir(path)))
}

func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "one")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "obstacle"), 0o700))
	require.Error(t, privatefile.WriteFile(path, []byte("new")))
	require.Equal(t, []string{"one"}, names(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	var wrong *fs.PathError
	require.ErrorAs(t, privatefile.WriteFile(filepath.Join(dir, "file", "one"), nil), &wrong)
	require.Equal(t, filepath.Join(dir, "file"), wrong.Path)
}

func TestConcurrentWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one")
	whole := func(n int) []byte { return []byte(strings.Repeat(fmt.Sprint(n), 10_000)) }
	require.NoError(t, privatefile.WriteFile(path, whole(0)))
	var writing sync.WaitGroup
	for n := range 4 {
		writing.Go(func() {
			for range 10 {
				if err := privatefile.WriteFile(path, whole(n)); err != nil &&
					runtime.GOOS != "windows" {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		content, err := os.ReadFile(path)
		if err != nil && runtime.GOOS == "windows" {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(string(content[:1]), 10_000), string(content))
	}
	require.Equal(t, []string{"one"}, names(t, filepath.Dir(path)))
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one")
	require.NoError(t, privatefile.WriteFile(path, nil))
	require.NoError(t, privatefile.Remove(path))
	require.NoError(t, privatefile.Remove(path))
	require.NoError(t, privatefile.Remove(filepath.Join(path, "below")))
	_, err := os.Lstat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Of many that create a file at once, one succeeds.
func TestCreateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "one")
	var (
		creating sync.WaitGroup
		mu       sync.Mutex
		created  []string
	)
	for i := range 20 {
		creating.Go(func() {
			content := fmt.Sprint(i)
			err := privatefile.CreateFile(path, []byte(content))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				created = append(created, content)
				return
			}
			require.ErrorIs(t, err, fs.ErrExist)
		})
	}
	creating.Wait()
	require.Len(t, created, 1)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, created[0], string(content))
	require.Equal(t, []string{"one"}, names(t, filepath.Dir(path)))
	requirePermissions(t, path, 0o600)
}

// TestSwap lets several writers add lines at once: no line of one that succeeds is lost.
func TestSwap(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a directory cannot be locked")
	}
	path := filepath.Join(t.TempDir(), "file")
	var added atomic.Int64
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 20 {
				old, err := os.ReadFile(path)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
				err = privatefile.Swap(path, old, append(bytes.Clone(old), "line\n"...), 0o600)
				if err == nil {
					added.Add(1)
				} else if !errors.Is(err, privatefile.ErrChanged) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotZero(t, added.Load())
	require.EqualValues(t, added.Load(), bytes.Count(content, []byte("\n")))
}
