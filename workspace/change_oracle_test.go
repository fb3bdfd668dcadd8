//go:build linux || darwin

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// twin is a change in a workspace, and the same by the system.
type twin struct {
	name   string
	ours   func(ws *workspace.Workspace, path, other string) error
	theirs func(path, other string) error
}

var twins = []twin{
	{"mkdir", func(ws *workspace.Workspace, path,
		_ string) error {
		return changes["Mkdir"](ws, path)
	},
		func(path, _ string) error { return os.Mkdir(path, 0o755) }},
	{"replace", func(ws *workspace.Workspace, path,
		_ string) error {
		return changes["WriteFile"](ws, path)
	},
		func(path, _ string) error { return os.WriteFile(path, []byte("WRITTEN"), 0o644) }},
	{"remove", func(ws *workspace.Workspace, path,
		_ string) error {
		return changes["Remove"](ws, path)
	},
		func(path, _ string) error { return os.Remove(path) }},
	{"rename", func(ws *workspace.Workspace, path, other string) error {
		return ws.Rename(path, other, workspace.Ref{}, workspace.Ref{})
	}, renameNew},
}

// renameNew is a rename that replaces nothing.
func renameNew(path, other string) error {
	if _, err := os.Lstat(strings.TrimSuffix(other, "/")); err == nil {
		return os.ErrExist
	}
	return unix.Rename(path, other)
}

// genPath draws a path into the roots A and B of a tree. It does not end in "..".
func genPath(rt *rapid.T, label string) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a", "b", "b", "l", "m", ".."}), 0,
		3).Draw(rt, label)
	names = append(names, rapid.SampledFrom([]string{"a", "b", "l", "m"}).Draw(rt, label))
	end := rapid.SampledFrom([]string{"", "", "", "/"}).Draw(rt, label)
	return rapid.SampledFrom([]string{"A", "B"}).Draw(rt, label) + "/" + strings.Join(names, "/") +
		end
}

// Without concurrent changes every operation in the roots does what the system does.
//
// Clause A23.
func TestChangesMatchTheSystem(t *testing.T) {
	base := newMemory(t)
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(base, "")
		require.NoError(rt, err)
		defer os.RemoveAll(top)
		ours, theirs := filepath.Join(top, "ours"), filepath.Join(top, "theirs")
		for _, dir := range []string{ours, theirs} {
			require.NoError(rt, os.MkdirAll(filepath.Join(dir, "A"), 0o755))
			require.NoError(rt, os.MkdirAll(filepath.Join(dir, "B"), 0o755))
		}
		ws := openIn(rt, filepath.Join(ours, "A"), filepath.Join(ours, "B"))
		defer ws.Close()
		var steps []string
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			path := genPath(rt, "path")
			if rapid.IntRange(0, 4).Draw(rt, "link?") == 0 {
				target := rapid.SampledFrom([]string{"a", "b", "a/b", "../a", "../A/a", "../B/b",
					"../B", "m", "l"}).Draw(rt, "target")
				if plant(ours, path, target) {
					_ = os.Symlink(target, filepath.Join(theirs, path))
					steps = append(steps, "link "+path+" "+target)
				}
				continue
			}
			change := rapid.SampledFrom(twins).Draw(rt, "change")
			other := genPath(rt, "other")
			steps = append(steps, change.name+" "+path+" "+other)
			err := change.ours(ws, ours+"/"+path, ours+"/"+other)
			var (
				outside   *workspace.OutsideError
				protected *workspace.ProtectedError
			)
			if !errors.As(err, &outside) && !errors.As(err, &protected) {
				theirErr := change.theirs(theirs+"/"+path, theirs+"/"+other)
				require.Equal(rt, theirErr == nil, err == nil, "%s: ours %v, theirs %v",
					strings.Join(steps, "\n"), err, theirErr)
			}
			require.Equal(rt, picture(rt, theirs), picture(rt, ours), strings.Join(steps, "\n"))
		}
	})
}

// plant creates a link if its directory is in a root without links on the way. It reports whether
// it did.
func plant(dir, path, target string) bool {
	parent, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.Dir(path)))
	if err != nil || parent != filepath.Join(dir, filepath.Dir(path)) ||
		!strings.HasPrefix(parent+"/", dir+"/A/") {
		return false
	}
	return os.Symlink(target, filepath.Join(dir, path)) == nil
}

func openIn(rt *rapid.T, dirs ...string) *workspace.Workspace {
	ws, err := workspace.Open(context.Background(), mustRoots(rt, dirs[0], dirs[1:]...), workspace.Options{})
	require.NoError(rt, err)
	return ws
}

// newMemory returns a new directory, in memory if possible.
func newMemory(t *testing.T) string {
	if dir, err := os.MkdirTemp("/dev/shm", "workspace"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return realDir(t)
}
