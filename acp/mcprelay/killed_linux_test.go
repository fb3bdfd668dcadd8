package mcprelay_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Even one that ignores the end of its input.
func TestW9_SIGKILLOfTheRelayLeavesNoServer(t *testing.T) {
	h := newHolders(t)
	c := behind(publish(t, folders(t, "a")...), self("hold", h.env()))
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, cmd.Start())
	server := h.next()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	h.ended(server)
}
