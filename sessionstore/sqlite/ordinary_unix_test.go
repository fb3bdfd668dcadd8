//go:build unix

package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// For root every directory is writable, so root runs the test as an ordinary user.
func TestS4_AReadOnlyDirectoryOfAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		TestS4_AReadOnlyDirectory(t)
		return
	}
	dir, err := os.MkdirTemp("/tmp", "sessions")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	binary := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	const nobody = 65534
	again := exec.CommandContext(t.Context(), binary, "-test.run=^TestS4_AReadOnlyDirectory$", "-test.count=1", "-test.v")
	again.Dir, again.Env = dir, []string{"TMPDIR=" + dir}
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	said, err := again.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: TestS4_AReadOnlyDirectory")
}
