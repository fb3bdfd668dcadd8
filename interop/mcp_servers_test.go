package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

// filesystem is the command of @modelcontextprotocol/server-filesystem.
func filesystem(t *testing.T) []string {
	t.Helper()
	command := everything(t)
	return []string{command[0], strings.Replace(command[1], "server-everything", "server-filesystem", 1)}
}

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

// uriList are folders as the URIs of roots.
func uriList(t *testing.T, dirs []string) (all []string) {
	for _, dir := range dirs {
		all = append(all, uriOf(t, dir))
	}
	return all
}

func TestM1_M11_ServerEverythingEchoesRootsWithStrangeNames(t *testing.T) {
	server := stdioServer("e", everything(t))
	top := folder(t)
	names := []string{"z last first", "a", "with space", "per%cent", "per%20cent", "hash#", "question?", "ü", "日本語", "[x]", "+&=;'"}
	if runtime.GOOS != "windows" {
		names = append(names, "line\nbreak", `back\slash`, `"quoted"`)
	}
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		require.NoError(t, os.Mkdir(dirs[len(dirs)-1], 0o755))
	}
	a := start(t).initialize()
	id := a.served(dirs, server)
	require.Equal(t, uriList(t, dirs), a.ask(id, "/call e.get-roots-list", "allow_always").echoed())
	more := append([]string{dirs[0], top}, dirs[3:]...)
	more = append(more, dirs[1], dirs[2])
	a.reload(id, more, server)
	require.Equal(t, uriList(t, more), a.ask(id, "/call e.get-roots-list", "").echoed(), "what was allowed for good is not asked again")
	a.reload(id, dirs[:1], server)
	require.Equal(t, uriList(t, dirs[:1]), a.ask(id, "/call e.get-roots-list", "allow_once").echoed())
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
	server := stdioServer("fs", filesystem(t))
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

// remote is an MCP server behind HTTP that wants a header.
func remote(t *testing.T, name, value string) (url string, refused *sync.Map) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	server.AddTool(&mcp.Tool{Name: "roots", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		list, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, root := range list.Roots {
			fmt.Fprintf(&b, "   URI: %s\n", root.URI)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: b.String()}}}, nil
	})
	refused = &sync.Map{}
	behind := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(name) != value {
			refused.Store(r.Method+" "+r.URL.String(), true)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL, refused
}

func TestM4_M2_AnHTTPServerWithHeaders(t *testing.T) {
	const secret = "Bearer tangerine-s3cret"
	url, refused := remote(t, "Authorization", secret)
	server := map[string]any{"type": "http", "name": "h", "url": url, "headers": []any{map[string]any{"name": "Authorization", "value": secret}}}
	first, second := folder(t), folder(t)
	a := start(t, "--log-level", "debug").initialize()
	id := a.served([]string{first, second}, server)
	turn := a.ask(id, "/call h.roots", "allow_always")
	require.Equal(t, uriList(t, []string{first, second}), turn.echoed(), turn.text)
	a.reload(id, []string{first}, server)
	require.Equal(t, uriList(t, []string{first}), a.ask(id, "/call h.roots", "allow_always").echoed(), "connected anew")
	a.leave()
	refused.Range(func(request, _ any) bool {
		t.Errorf("without its header: %s", request)
		return true
	})
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

func TestA25_S5_AFoundHTTPServerIsGivenTheEnvironmentsSecrets(t *testing.T) {
	url, refused := remote(t, "Authorization", "Bearer tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_TOKEN", "tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_URL", url)
	cwd := folder(t, ".mcp.json", `{"mcpServers":{
		"found": {"type": "http", "url": "${ACP_AGENT_INTEROP_URL}", "headers": {"Authorization": "Bearer ${ACP_AGENT_INTEROP_TOKEN}"}},
		"asks":  {"command": "x", "env": {"TOKEN": "${input:token}"}}}}`)
	a := start(t, "--log-level", "debug").initialize()
	id := a.open(cwd)
	require.Contains(t, a.ask(id, "/mcp start asks", "").text, "${input:token} is a value that only an editor can ask for")
	started := a.ask(id, "/mcp start found", "allow_once")
	require.Len(t, started.questions, 1)
	require.Contains(t, string(started.questions[0]), "${ACP_AGENT_INTEROP_URL}", "as it is written")
	require.Equal(t, uriList(t, []string{cwd}), a.ask(id, "/call found.roots", "allow_once").echoed())
	a.leave()
	refused.Range(func(request, _ any) bool {
		t.Errorf("without its header: %s", request)
		return true
	})
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

// A call is shown, asked for once for each tool of a session, and shown as done. What the program wrote is held
// against the schema when the test ends.
func TestA30_AlwaysIsForTheToolAndTheSession(t *testing.T) {
	servers := []any{stdioServer("e", everything(t))}
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
