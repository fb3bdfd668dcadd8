package mcprelay_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// The server ignores the end of its input.
//
// Clause W9.
func TestSIGKILL(t *testing.T) {
	h := proctest.Watch(t)
	c := behind(publish(t, folders(t, "a")...), self("hold", h.Env()))
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, cmd.Start())
	server := h.Next()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	server.Ended()
}
