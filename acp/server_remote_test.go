package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

// remote connects a remote client that may open roots in dirs.
func remote(t *testing.T, o acp.Options, dirs ...string) *client {
	t.Helper()
	for _, path := range dirs {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		o.Workspace.Policy.Allow = append(o.Workspace.Policy.Allow, dir)
	}
	c := connectTo(t, newServer(t, acp.ServerOptions{}, o), acp.Peer{Remote: true})
	c.initialize()
	c.permit("allow-always")
	return c
}

// Clause N4.
func TestRemoteRoots(t *testing.T) {
	dir, other := folder(t), folder(t)
	for _, method := range []string{"session/new", "session/fork", "session/load"} {
		c := remote(t, acp.Options{}, dir)
		id := c.open(dir)
		for _, path := range []string{other, filepath.Join(other, "missing"), "/"} {
			if method != "session/load" { // which says that it is not the session's
				require.Equal(t, "denied", c.try(method, rootsParams(id, path)).reason(t),
					"whether it exists is not told")
			}
			require.Equal(t, "denied", c.try(method, rootsParams(id, dir, path)).reason(t))
		}
		require.Contains(t, c.texts(id, "/roots add "+other)[0], "were not changed")
		file := writeFile(t, filepath.Join(other, "file"), "s3cret")
		require.NotContains(t, c.readFile(id, file), "s3cret")
		require.Empty(t, c.questions())
	}
	none := remote(t, acp.Options{})
	require.Equal(t, "denied", none.try("session/new", rootsParams("", dir)).reason(t))
	local := connectTo(t, newServer(t, acp.ServerOptions{}, acp.Options{}), acp.Peer{})
	local.initialize()
	local.open(dir)
}

// Clause N4.
func TestRemoteServers(t *testing.T) {
	t.Setenv("OPERATORS_SECRET", "s3cret")
	program := proctest.Executable()
	policy := func(name string) mcp.Policy {
		if name == "allowed" {
			return mcp.Policy{Command: []string{program, "--x"}, URL: "http://127.0.0.1:1/mcp"}
		}
		return mcp.Policy{}
	}
	dir := folder(t)
	stdio := func(name, command string, args []any, env ...any) map[string]any {
		return map[string]any{"name": name, "command": command, "args": args,
			"env": append([]any{}, env...)}
	}
	web := func(name, url string) map[string]any {
		return map[string]any{"type": "http", "name": name, "url": url, "headers": []any{}}
	}
	c := remote(t, acp.Options{MCPPolicy: policy, Environment: proctest.Env("files", "OURS=1")}, dir)
	for what, server := range map[string]map[string]any{
		"another name":    stdio("other", program, []any{"--x"}),
		"another program": stdio("allowed", "/bin/sh", []any{"--x"}),
		"other arguments": stdio("allowed", program, []any{"--x", "-c"}),
		"no arguments":    stdio("allowed", program, []any{}),
		"an environment": stdio("allowed", program, []any{"--x"},
			map[string]any{"name": "LD_PRELOAD", "value": "/tmp/x.so"}),
		"another URL":      web("allowed", "http://127.0.0.1:2/mcp"),
		"a URL by no name": web("other", "http://127.0.0.1:1/mcp"),
	} {
		m := c.try("session/new", servedParams("", []string{dir}, server))
		require.Equal(t, "server_not_allowed", m.reason(t), what)
		require.Equal(t, -32602, m.Error.Code)
	}
	id := c.serve([]string{dir}, stdio("allowed", program, []any{"--x"}))
	environment := c.use(id, "allowed.environ")
	require.Contains(t, environment, "OURS=1")
	require.NotContains(t, environment, "OPERATORS_SECRET")
	c.call("session/new", servedParams("", []string{dir}, web("allowed", "http://127.0.0.1:1/mcp")))

	// Whoever can write into a root could otherwise have the server start what they wrote.
	declare(t, dir, "allowed", "files", []string{"--x", "${OPERATORS_SECRET}"}, nil)
	asked := len(c.questions())
	answer := c.start(c.open(dir), "allowed")
	require.Contains(t, answer, "does not allow")
	require.NotContains(t, answer, "s3cret")
	require.Len(t, c.questions(), asked)

	c = remote(t, acp.Options{MCPPolicy: policy, Environment: proctest.Env("files")}, dir)
	written, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"allowed": map[string]any{"command": program, "args": []string{"--x"}}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".mcp.json"), written, 0o600))
	require.Contains(t, c.start(c.open(dir), "allowed"), "MCP server **`allowed`**")
}
