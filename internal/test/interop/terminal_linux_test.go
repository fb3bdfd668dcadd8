package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// terminal opens a pseudo-terminal and returns the end that a program is given.
func terminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return slave
}

// Clause W1.
func TestTerminal(t *testing.T) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(within(t), program.Path(), "--state-dir", t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal(t), &stdout, &stderr
	err := cmd.Run()
	require.Error(t, err)
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), stderr.String())
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "editor")
	require.Contains(t, stderr.String(), "acp-agent run --cwd")
}
