package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/npmtest"
)

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

// served opens a session with MCP servers.
func (a *agent) served(roots []string, servers ...any) string {
	a.t.Helper()
	var made struct{ SessionID string }
	a.call("session/new", map[string]any{"cwd": roots[0], "additionalDirectories": roots[1:], "mcpServers": servers}, &made)
	return made.SessionID
}

// reload loads a session with other roots.
func (a *agent) reload(id string, roots []string, servers ...any) {
	a.t.Helper()
	a.call("session/load", map[string]any{
		"sessionId": id, "cwd": roots[0], "additionalDirectories": roots[1:], "mcpServers": servers,
	}, nil)
}

func TestM1_M11_ServerEverythingEchoesRootsWithStrangeNames(t *testing.T) {
	server := stdioServer("e", npmtest.Everything(t))
	top, dirs := dirtest.Strange(t)
	a := start(t).initialize()
	id := a.served(dirs, server)
	require.Equal(t, mcptest.URIs(t, dirs...), a.ask(id, "/call e.get-roots-list", "allow_always").echoed())
	more := append([]string{dirs[0], top}, dirs[3:]...)
	more = append(more, dirs[1], dirs[2])
	a.reload(id, more, server)
	require.Equal(t, mcptest.URIs(t, more...), a.ask(id, "/call e.get-roots-list", "").echoed(), "what was allowed for good is not asked again")
	a.reload(id, dirs[:1], server)
	require.Equal(t, mcptest.URIs(t, dirs[:1]...), a.ask(id, "/call e.get-roots-list", "allow_once").echoed())
}

// read has server-filesystem read a file, and returns what the tool answered.
func (a *agent) read(id, path string) string {
	a.t.Helper()
	arguments, err := json.Marshal(map[string]string{"path": path})
	require.NoError(a.t, err)
	turn := a.ask(id, "/call fs.read_text_file "+string(arguments), "allow_always")
	require.Equal(a.t, "end_turn", turn.stop)
	return turn.text
}

const outside = "outside allowed directories"

func TestM5_M3_A22_ServerFilesystemKeepsToTheSessionsRoots(t *testing.T) {
	server := stdioServer("fs", npmtest.Filesystem(t))
	first, second, third := folder(t, "a.txt", "tangerine"), folder(t, "b.txt", "mandarin"), folder(t, "c.txt", "clementine")
	files := map[string]string{filepath.Join(first, "a.txt"): "tangerine", filepath.Join(second, "b.txt"): "mandarin", filepath.Join(third, "c.txt"): "clementine"}
	a := start(t).initialize()
	for path, text := range files { // each is the first call of a server
		require.Contains(t, a.read(a.served([]string{first, second, third}, server), path), text)
	}
	wide, narrow := a.served([]string{first, second}, server), a.served([]string{third}, server)
	require.Contains(t, a.read(wide, filepath.Join(second, "b.txt")), "mandarin")
	require.Contains(t, a.read(wide, filepath.Join(third, "c.txt")), outside)
	require.Contains(t, a.read(narrow, filepath.Join(third, "c.txt")), "clementine")
	require.Contains(t, a.read(narrow, filepath.Join(second, "b.txt")), outside)

	from := a.Count()
	a.reload(wide, []string{first}, server)
	require.Contains(t, a.read(wide, filepath.Join(second, "b.txt")), outside, "the list shrank")
	require.Contains(t, a.read(wide, filepath.Join(first, "a.txt")), "tangerine")
	require.Contains(t, messageText(t, a.updates(from, wide)), "is started again, because it knows "+second, "the user sees it")
	a.reload(wide, []string{first, third}, server)
	require.Contains(t, a.read(wide, filepath.Join(third, "c.txt")), "clementine")
	require.Contains(t, a.read(narrow, filepath.Join(first, "a.txt")), outside)
}

// remote is an MCP server behind HTTP that wants a header. Its tool says the roots as server-everything does.
func remote(t *testing.T, name, value string) *mcptest.Guarded {
	t.Helper()
	server := mcptest.New(mcptest.Options{Revision: "2025-11-25"})
	server.Add(&mcp.Tool{Name: "roots"}, func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		list, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, root := range list.Roots {
			fmt.Fprintf(&b, "   URI: %s\n", root.URI)
		}
		return b.String(), nil
	})
	return mcptest.Guard(t, name, value, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server.Server }, nil))
}

func TestM4_M2_AnHTTPServerWithHeaders(t *testing.T) {
	const secret = "Bearer tangerine-s3cret"
	guarded := remote(t, "Authorization", secret)
	server := map[string]any{"type": "http", "name": "h", "url": guarded.URL, "headers": []any{map[string]any{"name": "Authorization", "value": secret}}}
	first, second := folder(t), folder(t)
	a := start(t, "--log-level", "debug").initialize()
	id := a.served([]string{first, second}, server)
	turn := a.ask(id, "/call h.roots", "allow_always")
	require.Equal(t, mcptest.URIs(t, first, second), turn.echoed(), turn.text)
	a.reload(id, []string{first}, server)
	require.Equal(t, mcptest.URIs(t, first), a.ask(id, "/call h.roots", "allow_always").echoed(), "connected anew")
	a.leave()
	require.Empty(t, guarded.Refused(), "without its header")
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

func TestA25_S5_AFoundHTTPServerIsGivenTheEnvironmentsSecrets(t *testing.T) {
	guarded := remote(t, "Authorization", "Bearer tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_TOKEN", "tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_URL", guarded.URL)
	cwd := folder(t, ".mcp.json", `{"mcpServers":{
		"found": {"type": "http", "url": "${ACP_AGENT_INTEROP_URL}", "headers": {"Authorization": "Bearer ${ACP_AGENT_INTEROP_TOKEN}"}},
		"asks":  {"command": "x", "env": {"TOKEN": "${input:token}"}}}}`)
	a := start(t, "--log-level", "debug").initialize()
	id := a.open(cwd)
	require.Contains(t, a.ask(id, "/mcp start asks", "").text, "${input:token} is a value that only an editor can ask for")
	started := a.ask(id, "/mcp start found", "allow_once")
	require.Len(t, started.questions, 1)
	require.Contains(t, string(started.questions[0]), "${ACP_AGENT_INTEROP_URL}", "as it is written")
	require.Equal(t, mcptest.URIs(t, cwd), a.ask(id, "/call found.roots", "allow_once").echoed())
	a.leave()
	require.Empty(t, guarded.Refused(), "without its header")
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

// A call is shown, asked for once for each tool of a session, and shown as done. What the program wrote is held
// against the schema when the test ends.
func TestA30_AlwaysIsForTheToolAndTheSession(t *testing.T) {
	servers := []any{stdioServer("e", npmtest.Everything(t))}
	cwd := folder(t)
	a := start(t).initialize()
	id := a.served([]string{cwd}, servers...)
	first := a.ask(id, `/call e.echo {"message":"one"}`, "allow_always")
	require.Len(t, first.questions, 1)
	require.Contains(t, first.text, "Echo: one")
	var q struct {
		ToolCall struct{ ToolCallID string }
	}
	require.NoError(t, json.Unmarshal(first.questions[0], &q))
	var statuses []string
	for line := range strings.Lines(first.updates) {
		var u struct{ ToolCallID, Status string }
		require.NoError(t, json.Unmarshal([]byte(line), &u))
		if u.ToolCallID == q.ToolCall.ToolCallID {
			statuses = append(statuses, u.Status)
		}
	}
	require.Equal(t, []string{"pending", "in_progress", "completed"}, statuses)
	require.Empty(t, a.ask(id, `/call e.echo {"message":"two"}`, "").questions)
	require.Len(t, a.ask(id, `/call e.get-sum {"a":1,"b":2}`, "allow_once").questions, 1)
	require.Len(t, a.ask(id, `/call e.get-sum {"a":1,"b":2}`, "reject_once").questions, 1)
	other := a.served([]string{cwd}, servers...)
	require.Len(t, a.ask(other, `/call e.echo {"message":"three"}`, "allow_once").questions, 1)
}

// session/new is answered before any server is.
func TestM4_SlowServersDelayNoSession(t *testing.T) {
	var slow []any
	for i := range 10 {
		slow = append(slow, stdioServer(fmt.Sprint("slow", i), []string{"sleep", "1000"}))
	}
	a := start(t).initialize()
	id := a.served([]string{folder(t)}, slow...)
	require.Equal(t, 10, strings.Count(a.ask(id, "/mcp", "").text, "(stdio): idle"))
}
