package interop

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/terminal"
)

// openTerminal returns the end of a new terminal that a program is given.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	person, program, err := terminal.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() {
		_ = person.Close()
		_ = program.Close()
	})
	return program
}

// Clause W1.
func TestTerminal(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(within(t), program.Path(), "--state-dir", t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = openTerminal(t), &stdout, &stderr
	err := cmd.Run()
	require.Error(t, err)
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), stderr.String())
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "editor")
	require.Contains(t, stderr.String(), "acp-agent run  ")
}
