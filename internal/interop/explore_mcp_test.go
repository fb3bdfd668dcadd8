package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/npmtest"
)

// stdioServer is an MCP server as a client configures it.
func stdioServer(name string, command []string) map[string]any {
	return map[string]any{"name": name, "command": command[0], "args": command[1:], "env": []any{}}
}

// asking is a turn in which the client was asked for permission.
type asking struct {
	stop, text, updates string
	questions           []json.RawMessage // the params, in order
}

// ask runs a turn and answers each question for permission with one of its options, by kind.
func (a *agent) ask(session, text, answer string) asking {
	a.t.Helper()
	began, id := a.Count(), a.NextID()
	a.send(pipes.Request(id, "session/prompt", promptParams(session, text)))
	var turn asking
	for from := began; ; {
		m, at := a.await(from, func(m pipes.Message) bool {
			return m.Method == "session/request_permission" || m.IsResponse(fmt.Sprint(id))
		})
		if m.Method == "" {
			turn.stop = stopReason(a.t, m)
			break
		}
		from = at + 1
		turn.questions = append(turn.questions, m.Params)
		var q struct {
			Options []struct{ OptionID, Kind string }
		}
		require.NoError(a.t, json.Unmarshal(m.Params, &q))
		chosen := ""
		for _, o := range q.Options {
			if o.Kind == answer {
				chosen = o.OptionID
			}
		}
		require.NotEmpty(a.t, chosen, "%s", m.Params)
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, m.ID, chosen))
	}
	turn.updates = a.updates(began, session)
	turn.text = messageText(a.t, turn.updates)
	return turn
}

// messageText is the text of the messages among updates.
func messageText(t *testing.T, updates string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(updates) {
		var u struct {
			SessionUpdate string
			Content       json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &u))
		var block struct{ Text string }
		if u.SessionUpdate == "agent_message_chunk" {
			require.NoError(t, json.Unmarshal(u.Content, &block))
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// echoed are the URIs in the answer of the server's tool for roots, in order.
func (a asking) echoed() []string { return npmtest.Echoed(a.text) }

// told is how /mcp shows what a server was told.
func told(t *testing.T, dirs ...string) string {
	var b strings.Builder
	for i, uri := range mcptest.URIs(t, dirs...) {
		fmt.Fprintf(&b, "  %d. `%s`\n", i+1, uri)
	}
	return b.String()
}

func TestM1_M3_A20_ASessionsRootsReachItsMCPServer(t *testing.T) {
	servers := []any{stdioServer("e", npmtest.Everything(t))}
	z, b, other := folder(t, "z.txt", ""), folder(t, "b.txt", ""), folder(t)
	a := start(t).initialize()
	var made struct{ SessionID string }
	a.call("session/new", map[string]any{"cwd": z, "additionalDirectories": []string{b}, "mcpServers": servers}, &made)

	shown := a.ask(made.SessionID, "/mcp", "")
	require.Contains(t, shown.text, "MCP server **`e`** (stdio): idle")

	refused := a.ask(made.SessionID, "/call e.get-roots-list", "reject_once")
	require.Len(t, refused.questions, 1, "A30: a tool is asked for")
	require.Contains(t, refused.text, "the user did not allow it")
	require.Empty(t, refused.echoed())

	called := a.ask(made.SessionID, "/call e.get-roots-list {}", "allow_once")
	require.Equal(t, "end_turn", called.stop)
	require.Equal(t, mcptest.URIs(t, z, b), called.echoed())
	require.Contains(t, called.updates, `"sessionUpdate":"tool_call"`)
	require.Contains(t, called.updates, `"status":"completed"`)

	shown = a.ask(made.SessionID, "/mcp", "")
	require.Contains(t, shown.text, "MCP server **`e`** (stdio): ready")
	require.Regexp(t, "- product: `.*everything.*`", shown.text)
	require.Contains(t, shown.text, "legacy era")
	require.Regexp(t, `- told 2 roots at \d{4}-\d\d-\d\dT`, shown.text)
	require.Contains(t, shown.text, told(t, z, b))
	require.Contains(t, a.updates(0, made.SessionID), `"name":"e.simple-prompt"`, "prompts are slash commands once the server is ready")
	prompted := a.ask(made.SessionID, "/e.simple-prompt", "")
	require.Contains(t, prompted.text, "This is what the server says, not you.")

	a.call("session/load", map[string]any{
		"sessionId": made.SessionID, "cwd": z, "additionalDirectories": []string{other, b}, "mcpServers": servers,
	}, nil)
	called = a.ask(made.SessionID, "/call e.get-roots-list", "allow_once")
	require.Equal(t, mcptest.URIs(t, z, other, b), called.echoed())
	require.Contains(t, a.ask(made.SessionID, "/mcp", "").text, told(t, z, other, b))
	require.Equal(t, "end_turn", a.ask(made.SessionID, "/mcp tools", "").stop)
}

func TestA25_AFoundMCPServerStartsAfterPermissionOnly(t *testing.T) {
	command := npmtest.Everything(t)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"demo": map[string]any{"command": command[0], "args": command[1:]}}})
	require.NoError(t, err)
	cwd, found := folder(t), folder(t, ".mcp.json", string(config))
	state := filepath.Join(t.TempDir(), "state")
	a := startIn(t, state).initialize()
	id := a.open(cwd, found)

	require.Contains(t, a.ask(id, "/mcp", "").text, "found, not started: /mcp start demo")
	require.Contains(t, a.ask(id, "/call demo.get-roots-list", "").text, "have no tool", "it is not there")

	refused := a.ask(id, "/mcp start demo", "reject_once")
	require.Len(t, refused.questions, 1)
	require.Contains(t, string(refused.questions[0]), command[1], "the whole command is shown")
	require.Contains(t, refused.text, "the user did not allow it")
	require.Contains(t, a.ask(id, "/mcp", "").text, "The session has no MCP servers.")

	started := a.ask(id, "/mcp start demo", "allow_always")
	require.Len(t, started.questions, 1)
	require.Contains(t, started.text, "MCP server **`demo`** (stdio): ready")
	called := a.ask(id, "/call demo.get-roots-list", "allow_once")
	require.Equal(t, mcptest.URIs(t, cwd, found), called.echoed())
	require.Contains(t, a.ask(id, "/mcp", "").text, "started in this session")

	again := a.open(cwd, found)
	require.Contains(t, a.ask(again, "/mcp", "").text, "found, not started", "another session has its own")
	require.Empty(t, a.ask(again, "/mcp start demo", "").questions, "it was allowed for good")
}
