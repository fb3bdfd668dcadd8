package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// hangingMount mounts a file system at dir that answers nothing until the test ends, or release is
// called.
func hangingMount(t *testing.T, dir string) (release func()) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())
	if err := unix.Mount("hang", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(fd)
		t.Skip("no FUSE here: ", err)
	}
	released := false
	release = func() {
		if !released {
			_ = unix.Close(fd)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
		released = true
	}
	t.Cleanup(release)
	return release
}

// A folder on a mount that hangs is named after a while, whatever the others are, and the one
// before it is closed. What still waits ends when the mount does.
//
// Clause A5.
func TestOpenOfAMountThatHangs(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	g := newGrounds(t)
	hung := filepath.Join(g.a, "hung")
	require.NoError(t, os.Mkdir(hung, 0o700))
	hangingMount(t, hung)
	roots, err := workspace.NewRoots(g.b, []string{hung})
	require.NoError(t, err)

	_, err = workspace.Open(t.Context(), roots, workspace.Options{}.WithPatience(50*time.Millisecond))
	var wrong workspace.RootErrors
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong, 1)
	require.Equal(t, 1, wrong[0].Root)
	require.Equal(t, workspace.ReasonUnreadable, wrong[0].Reason)
	require.ErrorContains(t, err, hung+`" cannot be opened: its file system does not answer`)

	cancelled, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = workspace.Open(cancelled, roots, workspace.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	openWith(t, workspace.Options{}, g.b) // others can be opened
}

// Opening fails at once, for any folder, while as many attempts as allowed hang.
func TestOpenWhileManyAttemptsHang(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	g := newGrounds(t)
	hung := filepath.Join(g.a, "hung")
	require.NoError(t, os.Mkdir(hung, 0o700))
	release := hangingMount(t, hung)
	o := workspace.Options{Stalled: new(workspace.Stalled)}.WithPatience(time.Millisecond)
	for range workspace.MaxStalled {
		_, err := workspace.Open(t.Context(), mustRoots(t, hung), o)
		require.ErrorContains(t, err, "does not answer")
	}
	_, err := workspace.Open(t.Context(), mustRoots(t, g.b), o)
	require.ErrorContains(t, err, "other folders do not answer")
	openWith(t, workspace.Options{Stalled: new(workspace.Stalled)}, g.b) // another owner's

	release()
	require.Eventually(t, func() bool {
		w, err := workspace.Open(t.Context(), mustRoots(t, g.b), workspace.Options{Stalled: o.Stalled})
		if err == nil {
			_ = w.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}
