package interop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// Lines are validated when the test ends; this test provokes other output.
//
// Clause W1.
func TestStdoutCarriesProtocolOnly(t *testing.T) {
	t.Parallel()
	packages(t)
	cwd, lib := folder(t, "a.txt", "tangerine\n"), folder(t, "b.txt", "tangerine\n")
	for _, c := range []struct {
		name string
		args []string
		logs bool
	}{
		{"W1/explore", []string{"--log-level", "debug"}, true},
		{"W1/proxy", append([]string{"--log-level", "debug"}, behind()...), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, c.args...).initialize()
			var made struct{ SessionID string }
			a.call("session/new", json.RawMessage(`{"cwd":`+quoted(cwd)+`,"additionalDirectories":[`+quoted(lib)+
				`],"mcpServers":[{"name":"logged","command":"/bin/true","args":[],"env":[]}]}`), &made)
			session := made.SessionID
			for _, text := range []string{"/help", "/roots", "/search tangerine", "/search (", "/read a.txt", "/read missing", "/nonsense", "/mcp tools", "tangerine", "stream 50"} {
				require.Equal(t, "end_turn", a.prompt(session, text))
			}
			a.try("session/new", newParams(`"rel"`, `[null]`))
			a.try("no/such/method", map[string]any{})
			a.send("not JSON", "[]", "{}", `{"jsonrpc":"2.0","method":"no/such/notification"}`, "\xff")
			a.list(nil)
			a.call("session/close", sessionParams(session), nil)
			a.leave()
			if c.logs {
				require.NotEmpty(t, a.stderr.String(), "the log goes to standard error")
			}
			for _, secret := range []string{"tangerine", cwd + "/a.txt"} {
				require.NotContains(t, a.stderr.String(), secret, "what was said is not logged")
			}
		})
	}
	t.Run("W1/the default level logs nothing of a good session", func(t *testing.T) {
		a := start(t).initialize()
		a.prompt(a.open(cwd, lib), "/search tangerine")
		a.leave()
		require.Empty(t, a.stderr.String())
	})
}

// The connection survives a line over the limit set by the flag.
//
// Clause W3.
func TestLineLimitFlag(t *testing.T) {
	t.Parallel()
	a := start(t, "--max-line", "2000")
	m := a.try("initialize", map[string]any{"protocolVersion": 1, "_meta": map[string]string{"x": strings.Repeat("x", 2000)}})
	require.NotNil(t, m.Error)
	require.Equal(t, invalidRequest, m.Error.Code)
	require.Contains(t, m.Error.Message, "2000")
	a.initialize()
}

// Everything the built-in agent advertises works.
//
// Clauses A1, A2.
func TestAdvertisedMethodsWork(t *testing.T) {
	t.Parallel()
	var result struct{ AgentCapabilities json.RawMessage }
	a := start(t)
	a.call("initialize", map[string]any{"protocolVersion": 1}, &result)
	require.JSONEq(t, `{
		"loadSession": true,
		"auth": {"status": {}},
		"mcpCapabilities": {"http": true, "sse": false},
		"sessionCapabilities": {"additionalDirectories": {}, "close": {}, "delete": {}, "fork": {}, "list": {}, "resume": {}, "title": {}, "archive": {}, "status": {}}
	}`, string(result.AgentCapabilities))

	cwd, lib := folder(t), folder(t)
	id := a.open(cwd, lib)
	params := func() map[string]any {
		return map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{
			map[string]any{"type": "http", "name": "h", "url": "http://127.0.0.1:1/", "headers": []any{}},
		}}
	}
	roots := func(id string) string {
		from := a.Count()
		require.Equal(t, "end_turn", a.prompt(id, "/roots"))
		return a.updates(from, id)
	}
	for _, method := range []string{"session/load", "session/resume"} {
		a.call(method, params(), nil)
		require.Contains(t, roots(id), lib, method)
	}
	var fork struct{ SessionID string }
	a.call("session/fork", params(), &fork)
	require.Contains(t, roots(fork.SessionID), lib)
	require.Len(t, a.list(map[string]any{"cwd": cwd, "additionalDirectories": []string{lib}}), 2)
	require.Empty(t, a.list(map[string]any{"cwd": cwd, "additionalDirectories": []string{}}))
	a.call("session/close", sessionParams(fork.SessionID), nil)
	require.Len(t, a.list(nil), 2)
	a.call("session/delete", sessionParams(fork.SessionID), nil)
	require.Equal(t, []listed{{SessionID: id, Cwd: cwd, AdditionalDirectories: []string{lib}}}, a.list(nil))
	m := a.try("session/load", map[string]any{"sessionId": fork.SessionID, "cwd": cwd, "mcpServers": []any{}})
	require.NotNil(t, m.Error)
	require.Equal(t, notFound, m.Error.Code)

	var named struct{ Title string }
	a.call("session/set_title", map[string]any{"sessionId": id, "title": " mine "}, &named)
	require.Equal(t, "mine", named.Title)
	a.call("session/archive", sessionParams(id), nil)
	require.Empty(t, a.list(nil))
	require.Len(t, a.list(map[string]any{"archived": "only"}), 1)
	var status struct{ Status string }
	a.call("session/status", sessionParams(id), &status)
	require.Equal(t, "saved", status.Status)
	a.call("session/unarchive", sessionParams(id), nil)
	require.Len(t, a.list(nil), 1)
	var account struct{ State string }
	a.call("auth/status", map[string]any{}, &account)
	require.Equal(t, "not_required", account.State)
}

// A line of exactly the limit is read and is invalid JSON; one more byte is too long.
//
// Clause W3.
func TestDefaultLineLimit(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	a := start(t)
	for extra, want := range []int{-32700, invalidRequest} {
		from := a.Count()
		a.send(strings.Repeat("x", limit+extra))
		m, _ := a.await(from, func(m rawrpc.Message) bool { return string(m.ID) == "null" })
		require.Equal(t, want, m.Error.Code, m.Error.Message)
		require.Equal(t, extra == 1, strings.Contains(m.Error.Message, "67108864"), m.Error.Message)
	}
	a.initialize()
}
