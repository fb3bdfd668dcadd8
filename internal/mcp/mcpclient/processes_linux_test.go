package mcpclient_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// withMark returns a server whose processes can be found by a mark.
func withMark(c mcpclient.Config, mark proctest.Mark) mcpclient.Config {
	c.Env = append(c.Env, mcpclient.Pair{Name: proctest.MarkVariable, Value: string(mark)})
	return c
}

// behindShell returns a server started by a shell that waits for it.
func behindShell(c mcpclient.Config) mcpclient.Config {
	c.Name, c.Command, c.Args = "shell", "sh", []string{"-c", `"$0" "$1"; true`, c.Command, c.Args[0]}
	return c
}

// Clause W9.
func TestNpxAndShellWrappers(t *testing.T) {
	direct := npmServer("npm", npmtest.Filesystem(t))
	packages := filepath.Dir(npmtest.File(t, "testdata/node-mcp", ""))
	npx := direct
	npx.Name, npx.Command, npx.Args = "npx", "npx", []string{"--prefix", packages, "--offline", "mcp-server-filesystem"}
	shell, ofNpx := proctest.NewMark(t)+"-shell", proctest.NewMark(t)+"-npx"
	f := serving(t, mcpclient.Options{}, withMark(behindShell(direct), shell), withMark(npx, ofNpx))
	for name, mark := range map[string]proctest.Mark{"shell": shell, "npx": ofNpx} {
		f.call(name+".list_allowed_directories", "{}")
		require.GreaterOrEqual(t, len(mark.Processes()), 2, "a wrapper and its server")
	}
	require.NoError(t, f.Close(t.Context()))
	require.Empty(t, shell.Processes())
	require.Empty(t, ofNpx.Processes())
}
