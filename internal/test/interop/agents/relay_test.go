package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// filesystem is the session's name for @modelcontextprotocol/server-filesystem, which works only in
// its roots and can list them.
const filesystem = "orchard"

func TestServersOfARealAgent(t *testing.T) {
	t.Parallel()
	for _, s := range []subject{opencode, claude} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, s)
			s := onStage(t, s)
			e := s.relaying(t, "on")
			t.Run("is told all roots", func(t *testing.T) { isToldAllRoots(t, s.inNewFolders(t), e.lend(t)) })
			t.Run("found in a folder", func(t *testing.T) { foundInFolder(t, s.inNewFolders(t), e.lend(t)) })
			t.Run("W9/nothing of it is left", func(t *testing.T) {
				require.Contains(t, fmt.Sprint(s.processes(t)), "mcp-relay")
				e.leave()
				require.Empty(t, s.processes(t))
			})
		})
	}
}

// isToldAllRoots is about a server that the agent starts and would tell the agent's own roots.
//
// Clause M1.
func isToldAllRoots(t *testing.T, s *stage, e *editor) {
	made, err := e.NewSession(within(t), s.withServer(t, s.first, s.second))
	require.NoError(t, err)
	s.isTold(e, made.ID, s.cwd, s.first, s.second)
	require.Contains(t, s.serverReads(e, made.ID, s.second), "banana", "its tools are called")

	_, err = e.LoadSession(within(t), made.ID, s.withServer(t, s.second))
	require.NoError(t, err)
	s.isTold(e, made.ID, s.cwd, s.second)
	require.NotContains(t, s.serverReads(e, made.ID, s.first), "banana", "A24: the server is held to the roots that are left")
}

// foundInFolder is about a server that a folder configures, which reaches the agent once the user
// has started it.
//
// Clause A25.
func foundInFolder(t *testing.T, s *stage, e *editor) {
	command := npmtest.Filesystem(t)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		filesystem: map[string]any{"command": command[0], "args": append(command[1:], ".")}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.first, ".mcp.json"), config, 0o644))
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	require.NoError(t, err)
	_, err = e.Prompt(within(t), made.ID, sdk.TextBlock("/mcp-servers start "+filesystem))
	require.NoError(t, err)
	require.Contains(t, e.permissions(), "Start MCP server")
	require.Contains(t, e.heard(made.ID), "passed on to the agent")
	require.Contains(t, s.serverReads(e, made.ID, s.first), "banana", "its tools are called")
	require.Contains(t, fmt.Sprint(s.processes(t)), "--found-in "+s.first)
}

// relaying starts the program with a choice whether the relay is in front of the agent's MCP
// servers.
func (s *stage) relaying(t *testing.T, rootsRelay string) *editor {
	t.Helper()
	known, ok := profiles.Match(profiles.Known(), process.Command{Path: s.subject.command[0]})
	require.True(t, ok)
	s.state = dirtest.Short(t) // there is a socket in it
	config := filepath.Join(s.home, "config.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"agents": {%q: {"rootsRelay": %q}}}`, known.Name, rootsRelay), 0o644))
	return s.open(t, noFiles, append([]string{program.Path(), "--config", config, "--state-dir", s.state, "--"}, s.subject.command...))
}

// withServer creates a session with the server.
func (s *stage) withServer(t *testing.T, additional ...string) client.Setup {
	t.Helper()
	command := npmtest.Filesystem(t)
	server := sdk.McpServerStdio{Name: filesystem, Command: command[0], Args: command[1:], Env: []sdk.EnvVariable{}}
	return client.Setup{Roots: s.roots(t, additional...), MCPServers: []sdk.McpServer{{Stdio: &server}}}
}

// isTold lets the model ask the server for its roots until they are as wanted: an agent may start a
// server late, and a server requests the roots some time after it was notified.
func (s *stage) isTold(e *editor, session string, want ...string) {
	e.t.Helper()
	for ctx := within(e.t); ; {
		told, _ := s.serverRoots(e, session)
		if slices.Equal(told, want) {
			return
		}
		require.NoError(e.t, ctx.Err(), "the server was told %q and not %q", told, want)
	}
}

// path begins a line with a path, as the server writes them.
var path = regexp.MustCompile(`(?m)^/[^"\n]*`)

// serverRoots returns the roots that the server reports. ok is false if the agent does not offer
// the tool to its model.
func (s *stage) serverRoots(e *editor, session string) (roots []string, ok bool) {
	e.t.Helper()
	text, ok := s.use(e, session, modelserver.Use("list_allowed_directories", ""))
	// Some agents pass the server's answer to the model as JSON, one does both.
	text = strings.ReplaceAll(text, `\n`, "\n")
	return path.FindAllString(text[strings.LastIndex(text, "Allowed directories:")+1:], -1), ok
}

// serverReads returns the server's answer to reading a folder's file.
func (s *stage) serverReads(e *editor, session, folder string) string {
	e.t.Helper()
	text, ok := s.use(e, session, modelserver.Use("read_text_file", fruit(folder)))
	require.True(e.t, ok, "the agent does not offer the server's tools")
	return text
}

// use runs a turn in which the model calls one of the server's tools, and returns the result.
func (s *stage) use(e *editor, session string, order modelserver.Order) (result string, ok bool) {
	e.t.Helper()
	turn := s.prompt(e, session, "Please look.", order.By(filesystem), modelserver.Say("I looked."))
	for _, r := range slices.Backward(turn) { // some agents ask on the side as well
		for i := len(r.Items) - 1; i >= 0 && r.Items[i].Kind != modelserver.User; i-- {
			if r.Items[i].Kind == modelserver.Result {
				return r.Items[i].Text, true
			}
		}
	}
	return "", false
}
