package profiles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// An agent in the sandbox starts in a directory that it can read, whatever ours is. Programs of Bun
// do not start in another one.
//
// Clause X1.
func TestAgentsStartWhereTheyCanRead(t *testing.T) {
	temp, root := dirtest.New(t), dirtest.New(t)
	t.Setenv("TMPDIR", temp)
	t.Chdir(dirtest.New(t))
	for _, at := range []struct {
		mode  sandbox.Mode
		roots []workspace.Root
		want  string
	}{
		{sandbox.Off, nil, ""}, {sandbox.Write, nil, ""}, {sandbox.Strict, nil, temp},
		{sandbox.Strict, roottest.Open(t, root).Opened(), root},
	} {
		p := profiles.Profile{Sandbox: backend.Sandbox{Mode: at.mode}}
		c, err := p.Restrict(profiles.Command{Path: "/bin/ls"}, at.roots)
		require.NoError(t, err)
		require.Equal(t, at.want, c.Dir)
		_, err = process.Output(t.Context(), c)
		require.NoError(t, err)
	}
	t.Chdir(root)
	p := profiles.Profile{Sandbox: backend.Sandbox{Mode: sandbox.Strict}}
	c, err := p.Restrict(profiles.Command{Path: "/bin/ls"}, roottest.Open(t, root).Opened())
	require.NoError(t, err)
	require.Empty(t, c.Dir)
}
