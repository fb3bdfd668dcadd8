package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// What acp-agent reads and writes for an agent in the sandbox lies where the agent may write.
//
// Clauses X5, X6.
func TestOwnDirsInTheSandbox(t *testing.T) {
	base, out := dirtest.New(t, "home/own/f", "", "root/f", ""), dirtest.New(t, "own/f", "")
	home := filepath.Join(base, "home")
	o := Config{Profile: profiles.Profile{State: profiles.State{
		OwnDirs: []string{"$AGENT_HOME/own"}, Writes: []string{"$AGENT_HOME/"}}}}
	o.Profile.Sandbox = backend.Sandbox{Mode: backend.SandboxWrite,
		Records: filepath.Join(base, "records")}
	c := profiles.Command{Path: "/bin/true",
		Env: []string{"AGENT_HOME=" + home, "TMPDIR=" + t.TempDir()}}
	opened := roottest.Open(t, base).Opened()
	restricted, err := o.Profile.Restrict(c, opened)
	require.NoError(t, err)
	own := filepath.Join(home, "own")
	require.Equal(t, []ownDir{{own, own}}, o.ownDirs(restricted))

	require.NoError(t, os.RemoveAll(home))
	require.NoError(t, os.Symlink(out, home))
	restricted, err = o.Profile.Restrict(c, opened)
	require.NoError(t, err)
	require.Empty(t, o.ownDirs(restricted))
	require.Equal(t, []ownDir{{own, filepath.Join(out, "own")}}, o.ownDirs(c),
		"without a sandbox it could go there itself")
}
