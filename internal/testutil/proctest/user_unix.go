//go:build unix

package proctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is the user, and the group, of processes that own nothing.
const nobody = 65534

// AsOrdinaryUser runs a test of this binary in a process of an ordinary user, where this one is root's, for whom
// everything is readable and writable. It reports whether it did: if not, the caller is an ordinary user itself.
func AsOrdinaryUser(t *testing.T, test string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("/tmp", "user") // which all may reach
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777))
	text, err := os.ReadFile(Executable())
	require.NoError(t, err)
	binary := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	again := exec.CommandContext(t.Context(), binary, "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	again.Dir, again.Env = dir, []string{"TMPDIR=" + dir}
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	said, err := again.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: "+test)
	return true
}
