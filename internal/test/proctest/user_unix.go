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

// nobody is an unprivileged user and group.
const nobody = 65534

// AsOrdinaryUser runs a test in a process of an ordinary user if this process runs as root, who may
// read and write everything. It reports whether it did so; otherwise the caller should run the test
// itself.
func AsOrdinaryUser(t *testing.T, test string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("/tmp", "user") // accessible to all users
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
	output, err := again.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: "+test)
	return true
}
