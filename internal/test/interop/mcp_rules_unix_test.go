//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// toolServer starts the server that an agent got for the folders of a session in cwd, as the agent
// does, and connects to it.
func toolServer(t *testing.T, permissions map[string]any, cwd string, others ...string) *mcp.ClientSession {
	t.Helper()
	return serverOf(t, permissions, "off", map[string]any{"cwd": cwd, "additionalDirectories": others,
		"mcpServers": []any{}})
}

// serverOf starts the only MCP server that an agent got in a session/new with these params, as the
// agent does, and connects to it. relay is the agent's rootsRelay.
func serverOf(t *testing.T, permissions map[string]any, relay string, params map[string]any) *mcp.ClientSession {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{scripted.KeeperDir: home}
	for _, pair := range proctest.Env("keeper") {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	config := configFile(t, map[string]any{"permissions": permissions, "agents": map[string]any{
		"keeper": map[string]any{"command": proctest.Executable(), "env": env, "rootsRelay": relay}}})
	a := start(t, "--config", config, "--agent", "keeper").initialize()
	a.call("session/new", params, &struct{}{})
	sent := dirtest.Read(t, filepath.Join(home, "requests"))
	_, passed, found := strings.Cut(sent, "session/new ")
	require.True(t, found, "%s", sent)
	var opened struct {
		MCPServers []struct {
			Command string
			Args    []string
			Env     []struct{ Name, Value string }
		}
	}
	require.NoError(t, json.NewDecoder(strings.NewReader(passed)).Decode(&opened))
	require.Len(t, opened.MCPServers, 1, passed)
	server := opened.MCPServers[0]
	require.Contains(t, server.Args, "--roots-from")
	cmd := exec.Command(server.Command, server.Args...)
	cmd.Env = os.Environ()
	for _, v := range server.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(within(t), &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// The rules of a session hold for the tools that its agent gets for the other folders, whatever way
// leads to the file. Nobody can be asked there.
//
// Clause R5.
func TestRulesHoldForTheToolsOfAnAgent(t *testing.T) {
	t.Parallel()
	if program.Path() == "" {
		t.Skip("needs the program")
	}
	cwd := folder(t, "inner/.env", "hunter2\n", "inner/key", "hunter2\n", "open", "open\n")
	other := folder(t, ".env", "hunter2\n", "sub/deep/x", "", "sub/.env", "hunter2\n", "asked", "hunter2\n",
		"skills/s/SKILL.md", "---\nname: s\ndescription: hunter2\n---\nhunter2\n", "open", "open\n")
	require.NoError(t, os.Symlink(filepath.Join("sub", "deep"), filepath.Join(other, "link")))
	require.NoError(t, os.Symlink(".env", filepath.Join(other, "plain")))
	session := toolServer(t, map[string]any{"deny": []string{"read **/.env", "read inner/key", "read **/SKILL.md"},
		"ask": []string{"read asked"}}, cwd, filepath.Join(cwd, "inner"), other)
	call := func(tool string, arguments map[string]any) string {
		result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return err.Error()
		}
		said, err := json.Marshal(result)
		require.NoError(t, err)
		return string(said)
	}
	for _, path := range []string{".env", "plain", "link/../.env", "sub/.env", "./sub/../.env", ".ENV", "asked"} {
		path = other + "/" + path
		for tool, arguments := range map[string]map[string]any{
			"read_file": {"path": path}, "read_files": {"paths": []string{path, filepath.Join(other, "open")}},
			"read_media": {"path": path}, "search": {"path": path, "pattern": "hunter"}, "file_info": {"path": path},
		} {
			require.NotContains(t, call(tool, arguments), "hunter2", "%s of %s", tool, path)
		}
	}
	require.Contains(t, call("read_file", map[string]any{"path": filepath.Join(cwd, "inner", "key")}), "read inner/key", "the name in the outer folder")
	require.Contains(t, call("read_file", map[string]any{"path": filepath.Join(other, "asked")}), "acp-agent cannot ask the user here")
	for _, dir := range []string{cwd, other} {
		found := call("search", map[string]any{"path": dir, "pattern": "hunter|open", "ignored": "include"})
		require.NotContains(t, found, "hunter2")
		require.Contains(t, found, "open")
	}
	require.NotContains(t, call("find_skills", map[string]any{}), "hunter2")
}

// The rules of a session hold for calls of the client's MCP servers that go through the relay.
//
// Clause R5.
func TestRulesHoldBehindTheRelay(t *testing.T) {
	t.Parallel()
	if program.Path() == "" {
		t.Skip("needs the program")
	}
	cwd := folder(t, ".env", "hunter2\n", "open", "open\n")
	session := serverOf(t, map[string]any{"deny": []string{"read **/.env", "tool files.search"}}, "on",
		map[string]any{"cwd": cwd, "mcpServers": []any{map[string]any{"name": "files", "command": program.Path(),
			"args": []string{"mcp", "--dir", cwd}, "env": []any{}}}})
	for _, c := range []struct{ tool, path, want string }{
		{"read_file", "open", "open"},
		{"read_file", ".env", `acp-agent refused the call: the user's rule "read **/.env" denies it`},
		{"search", "open", `acp-agent refused the call: the user's rule "tool files.search" denies it`},
	} {
		result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: c.tool,
			Arguments: map[string]any{"path": filepath.Join(cwd, c.path), "pattern": "x"}})
		require.NoError(t, err)
		require.Contains(t, result.Content[0].(*mcp.TextContent).Text, c.want)
	}
}
