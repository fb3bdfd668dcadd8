package acp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// An agent in the sandbox may have changed the file that the editor's server runs. So the server
// that /mcp starts is in the same sandbox.
//
// Clause X5.
func TestMCPCommandStartsServersInTheAgentsSandbox(t *testing.T) {
	notOverRemote(t, namesServers)
	root, out := folder(t), folder(t)
	t.Setenv("TMPDIR", folder(t))
	script := filepath.Join(root, "server.sh")
	text := "#!/bin/sh\necho >" + root + "/started\necho >" + out + "/evil\nexec " + proctest.Executable()
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	s := server("ours", "files")
	s["command"] = script
	for _, own := range []backend.SandboxMode{backend.SandboxOff, backend.SandboxWrite} {
		r := &scripted{connects: true, sandbox: backend.Sandbox{Mode: backend.SandboxWrite}}
		c := served(t, acp.Options{Backend: using(r), MCPPolicy: func(string) mcp.Policy {
			return mcp.Policy{Sandbox: backend.Sandbox{Mode: own, Write: []string{out}}}
		}})
		id := c.serve([]string{root}, s)
		require.Contains(t, c.say(id, "/mcp tools"), "tool ours.where")
		require.FileExists(t, filepath.Join(root, "started"))
		require.NoFileExists(t, filepath.Join(out, "evil"))
	}
}
