package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// hostile is text that would do something where it is not only shown.
const hostile = "<img src=x onerror=alert(1)><script>document.title='owned'</script> </article> &lt;b&gt; " +
	"\x1b[31mred\x1b[0m \u202egnp.exe \u200b javascript:alert(1) ${alert(1)}"

// keys returns folders in dir.
func keys(t testing.TB, dir string, names ...string) sessionstore.Keys {
	t.Helper()
	var paths []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		paths = append(paths, path)
	}
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	require.NoError(t, err)
	var k sessionstore.Keys
	k.Roots = roots
	for _, d := range roots.All() {
		k.Real = append(k.Real, workspace.Real(d))
	}
	return k
}

// parsed returns updates, given as values that become their member "update".
func parsed(t testing.TB, updates ...map[string]any) (list []sessionstore.Update) {
	t.Helper()
	for _, u := range updates {
		raw, err := json.Marshal(map[string]any{"update": u})
		require.NoError(t, err)
		one, err := sessionstore.ParseUpdate(raw)
		require.NoError(t, err)
		list = append(list, one)
	}
	return list
}

func said(kind, text string) map[string]any {
	return map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}}
}

// conversation stores a session with a turn and returns its lease.
func conversation(
	t testing.TB, store sessionstore.Store, s sessionstore.Session, prompt string, updates ...map[string]any,
) sessionstore.Lease {
	t.Helper()
	lease, err := store.Create(t.Context(), s)
	require.NoError(t, err)
	turn(t, store, lease, prompt, updates...)
	return lease
}

func turn(t testing.TB, store sessionstore.Store, lease sessionstore.Lease, prompt string, updates ...map[string]any) {
	t.Helper()
	number, err := store.BeginTurn(t.Context(), lease, sessionstore.Turn{
		Prompt: parsed(t, said("user_message_chunk", prompt)), Title: prompt,
	})
	require.NoError(t, err)
	require.NoError(t, store.Append(t.Context(), lease, parsed(t, updates...)))
	require.NoError(t, store.EndTurn(t.Context(), lease, number))
}

// long stores a session of n updates.
func long(t testing.TB, store sessionstore.Store, s sessionstore.Session, n int) sessionstore.Lease {
	t.Helper()
	lease := conversation(t, store, s, "Check every file")
	for i := 0; i < n; {
		var part []map[string]any
		for ; len(part) < 1000 && i < n; i += 10 {
			call := fmt.Sprint("call", i)
			for j := range 8 {
				part = append(part, said("agent_message_chunk", fmt.Sprintf("piece %d of it. ", i+j)))
			}
			part = append(part,
				map[string]any{"sessionUpdate": "tool_call", "toolCallId": call, "title": fmt.Sprint("Read file", i, ".go"), "status": "pending"},
				map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
					"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "package x"}}}})
		}
		require.NoError(t, store.Append(t.Context(), lease, parsed(t, part...)))
	}
	return lease
}

// sessions stores what the tests look at, and returns the lease of one that goes on.
func sessions(t testing.TB, store sessionstore.Store, dir string, updates int) sessionstore.Lease {
	t.Helper()
	app := keys(t, dir, "src/shop", "src/shared", "src/skills")
	app.Roots = app.Roots.ReadOnlyAt([]string{filepath.Join(dir, "src/skills")})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src/shop/AGENTS.md"), []byte("Run the tests.\n"), 0o600))
	opencode := sessionstore.Agent{Kind: "proxy", Profile: "opencode"}
	titles := []string{"Move the price rules to the shared package", "Why does the build take two minutes?", "Upgrade the database driver",
		"Write tests for the order import", "Explain how sessions are stored", "Rename Customer to Account", "Find the flaky test", "Dark mode for the settings page"}
	var imported []sessionstore.Session
	for i := range 240 {
		imported = append(imported, sessionstore.Session{ID: sessionstore.ID(fmt.Sprint("sess_old", i)), StateKey: fmt.Sprint(i),
			Keys: keys(t, dir, []string{"src/shop", "src/site", "src/tools"}[i%3]), Title: titles[i%len(titles)],
			Updated: time.Now().Add(-time.Duration(i*i/8+1) * 5 * time.Hour)})
	}
	_, err := store.Import(t.Context(), sessionstore.Agent{Kind: "proxy", Profile: "gemini"}, imported, false)
	require.NoError(t, err)
	long(t, store, sessionstore.Session{ID: "sess_long", Agent: opencode, Keys: app}, updates)
	conversation(t, store, sessionstore.Session{ID: "sess_hostile", Agent: sessionstore.Agent{Kind: "proxy", Profile: "<i>x"}, Keys: keys(t, dir, "<b>bold")},
		hostile, said("agent_message_chunk", "# "+hostile+"\n\n- "+hostile+"\n\n```\n"+hostile+"\n```\n[link](javascript:alert(1)) [other](https://example.org)"),
		said("agent_thought_chunk", hostile),
		map[string]any{"sessionUpdate": "plan", "entries": []any{map[string]any{"content": hostile, "status": "\"><b>"}}},
		map[string]any{"sessionUpdate": "tool_call", "toolCallId": "1", "title": hostile, "status": "\"><b>", "content": []any{
			map[string]any{"type": "diff", "path": hostile, "oldText": hostile, "newText": "x"},
			map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": hostile}}}})
	conversation(t, store, sessionstore.Session{ID: "sess_arabic", Agent: opencode, Keys: keys(t, dir, "src/"+strings.Repeat("folder", 30))}, strings.Repeat("مرحبا", 30),
		said("agent_message_chunk", "سأصلح `config.json` الآن.\n\n- الخطوة الأولى"))
	return shopSession(t, store, sessionstore.Session{ID: "sess_shop", Agent: opencode, Keys: app})
}

// shopSession stores a conversation such as people have.
func shopSession(t testing.TB, store sessionstore.Store, s sessionstore.Session) sessionstore.Lease {
	t.Helper()
	lease := conversation(t, store, s, "Orders fail when the payment service answers 503. Retry with backoff, and honour Retry-After.",
		map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{
			map[string]any{"name": "review", "description": "Looks for mistakes in what has changed"}}},
		map[string]any{"sessionUpdate": "usage_update", "used": 1200, "size": 200000},
		said("agent_thought_chunk", "The client is in src/shop/payment. Look for an existing helper in shared first."),
		map[string]any{"sessionUpdate": "plan", "entries": []any{
			map[string]any{"content": "Find how other clients retry", "status": "completed"},
			map[string]any{"content": "Retry in the payment client", "status": "completed"},
			map[string]any{"content": "Test with a server that answers 503", "status": "in_progress"}}},
		said("agent_message_chunk", "`shared/httpx` already reads **Retry-After** in both forms. I will use "),
		said("agent_message_chunk", "it in the payment client:\n\n- one request may be sent **four times**\n- the waits are 0.5, 1 and 2 seconds, unless the service asks for another one\n- a `4xx` answer is never repeated"),
		map[string]any{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Search for RetryAfter in 3 folders", "status": "completed", "content": []any{
			map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "```\nshared/httpx/after.go:12: func RetryAfter(header http.Header, now time.Time) (wait time.Duration, ok bool)\n```"}}}},
		map[string]any{"sessionUpdate": "tool_call", "toolCallId": "2", "title": "Edit shop/payment/client.go", "status": "completed", "content": []any{
			map[string]any{"type": "diff", "path": "/home/ana/src/shop/payment/client.go",
				"oldText": "func (c *Client) Pay(ctx context.Context, o Order) error {\n\tresponse, err := c.post(ctx, \"/payments\", o)\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn check(response)\n}\n",
				"newText": "func (c *Client) Pay(ctx context.Context, o Order) error {\n\tfor attempt := range attempts {\n\t\tresponse, err := c.post(ctx, \"/payments\", o)\n\t\tif err != nil || response.StatusCode != http.StatusServiceUnavailable {\n\t\t\treturn check(response, err)\n\t\t}\n\t\tc.wait(ctx, attempt, response.Header)\n\t}\n\treturn ErrUnavailable\n}\n"}}},
		map[string]any{"sessionUpdate": "tool_call", "toolCallId": "3", "title": "go test ./payment", "status": "failed", "content": []any{
			map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "--- FAIL: TestPayRetries\n    client_test.go:41: sent 3 requests, want 4"}}}},
		said("agent_message_chunk", "The test found an error of mine: `attempts` was 3. Corrected."),
		map[string]any{"sessionUpdate": "tool_call", "toolCallId": "4", "title": "go test ./payment", "status": "completed", "content": []any{
			map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "ok  shop/payment 0.214s"}}}})
	turn(t, store, lease, "Does the order keep its idempotency key between attempts?",
		said("agent_message_chunk", "Yes. The key is made once, in `NewOrder`, and sent with each attempt:\n\n```go\nrequest.Header.Set(\"Idempotency-Key\", o.Key)\n```\n\nSo the service can tell a repeated payment from a second one:\n\n"+
			"| Answer | What the client does |\n|---|---|\n| `200` | ends |\n| `503` | waits, then **repeats** |\n| `4xx` | fails |"))
	return lease
}

// writeTrace writes a trace as acp-agent --trace does, and returns its path.
func writeTrace(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "orders.trace")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	at := time.Date(2026, 11, 23, 9, 12, 0, 0, time.UTC)
	line := func(after time.Duration, arrow, peer, message string) {
		at = at.Add(after)
		_, err := fmt.Fprintf(file, "%s acp-agent[4710] %s %s %s\n", at.Format(time.RFC3339Nano), arrow, peer, message)
		require.NoError(t, err)
	}
	const agent, ms = "opencode[4711]", time.Millisecond
	request := func(id int, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	answer := func(id int, result string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
	}
	fault := func(id int, message string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":%q}}`, id, message)
	}
	update := func(session, update string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":` + update + `}}`
	}
	line(0, "<-", "editor", request(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}`))
	line(3*ms, "->", agent, request(1, "initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"acp-agent","version":"1.0.0"}}`))
	line(640*ms, "<-", agent, answer(1, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true}},"agentInfo":{"name":"opencode"}}`))
	line(2*ms, "->", "editor", answer(0, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true},"sessionCapabilities":{"additionalDirectories":{},"list":{},"fork":{}}},"agentInfo":{"name":"acp-agent"}}`))
	line(90*ms, "<-", "editor", request(1, "session/new", `{"cwd":"/home/ana/src/shop","additionalDirectories":["/home/ana/src/shared"],"mcpServers":[{"name":"db","command":"db-mcp","args":[],"env":[{"name":"TOKEN","value":"***"}]}]}`))
	line(5*ms, "->", agent, request(2, "session/new", `{"cwd":"/home/ana/src/shop","mcpServers":[{"name":"db","command":"acp-agent","args":["mcp-relay","--","db-mcp"],"env":[{"name":"TOKEN","value":"***"}]},{"name":"folders","command":"acp-agent","args":["mcp"],"env":[]}]}`))
	line(410*ms, "<-", agent, answer(2, `{"sessionId":"ses_91"}`))
	line(4*ms, "->", "editor", answer(1, `{"sessionId":"sess_SHOP"}`))
	line(1900*ms, "<-", "editor", request(2, "session/prompt", `{"sessionId":"sess_SHOP","prompt":[{"type":"text","text":"Orders fail when the payment service answers 503."}]}`))
	line(6*ms, "->", agent, request(3, "session/prompt", `{"sessionId":"ses_91","prompt":[{"type":"text","text":"Folders of this session: /home/ana/src/shop, /home/ana/src/shared"},{"type":"text","text":"Orders fail when the payment service answers 503."}]}`))
	for i := range 12 {
		u := fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"piece %d "}}`, i)
		line(180*ms, "<-", agent, update("ses_91", u))
		line(ms, "->", "editor", update("sess_SHOP", u))
	}
	call := `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit payment/client.go","status":"pending"}`
	line(120*ms, "<-", agent, update("ses_91", call))
	line(ms, "->", "editor", update("sess_SHOP", call))
	line(20*ms, "<-", agent, request(1, "session/request_permission", `{"sessionId":"ses_91","toolCall":{"toolCallId":"1","title":"Edit payment/client.go"},"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}]}`))
	line(2*ms, "->", "editor", request(10, "session/request_permission", `{"sessionId":"sess_SHOP","toolCall":{"toolCallId":"1","title":"Edit payment/client.go"},"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}]}`))
	line(4200*ms, "<-", "editor", answer(10, `{"outcome":{"outcome":"selected","optionId":"once"}}`))
	line(ms, "->", agent, answer(1, `{"outcome":{"outcome":"selected","optionId":"once"}}`))
	line(30*ms, "<-", agent, request(2, "fs/read_text_file", `{"sessionId":"ses_91","path":"/home/ana/.ssh/id_ed25519"}`))
	line(2*ms, "->", agent, fault(2, "/home/ana/.ssh/id_ed25519 is outside the session's folders"))
	line(300*ms, "<-", agent, request(3, "terminal/create", `{"sessionId":"ses_91","command":"go test ./payment"}`))
	line(2*ms, "->", "editor", request(11, "terminal/create", `{"sessionId":"sess_SHOP","command":"go test ./payment"}`))
	line(35*ms, "<-", "editor", answer(11, `{"terminalId":"t1"}`))
	line(ms, "->", agent, answer(3, `{"terminalId":"t1"}`))
	line(20*ms, "<-", agent, request(4, "terminal/wait_for_exit", `{"sessionId":"ses_91","terminalId":"t1"}`))
	line(ms, "->", "editor", request(12, "terminal/wait_for_exit", `{"sessionId":"sess_SHOP","terminalId":"t1"}`))
	line(2600*ms, "<-", "editor", answer(12, `{"exitCode":1}`))
	line(ms, "->", agent, answer(4, `{"exitCode":1}`))
	line(700*ms, "<-", agent, answer(3, `{"stopReason":"end_turn"}`))
	line(8*ms, "->", "editor", answer(2, `{"stopReason":"end_turn"}`))
	line(900*ms, "<-", "editor", request(3, "session/set_mode", `{"sessionId":"sess_SHOP","modeId":"plan"}`))
	line(3*ms, "->", agent, request(4, "session/set_mode", `{"sessionId":"ses_91","modeId":"plan"}`))
	line(1500*ms, "<-", agent, "(17 bytes of invalid JSON)")
	hostileText, err := json.Marshal(hostile)
	require.NoError(t, err)
	line(200*ms, "<-", "editor", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_SHOP","_meta":{"why":`+string(hostileText)+`}}}`)
	line(2*ms, "->", agent, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"ses_91"}}`)
	return path
}

// windowsTrace writes a trace to which two windows of an editor wrote at the same time, and then a
// process that got the number of one of them, after the clock was set back.
func windowsTrace(t testing.TB, dir, one string) {
	t.Helper()
	content, err := os.ReadFile(one)
	require.NoError(t, err)
	var b strings.Builder
	for line := range strings.Lines(string(content)) {
		b.WriteString(line + strings.NewReplacer("[4710]", "[4712]", "[4711]", "[4713]").Replace(line))
	}
	b.WriteString(strings.ReplaceAll(string(content), "T09:12:", "T08:12:"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "windows.trace"), []byte(b.String()), 0o600))
}

// longTrace writes a trace of n requests without an answer.
func longTrace(t testing.TB, dir string, n int) (path string) {
	t.Helper()
	path = filepath.Join(dir, "long.trace")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2026-11-23T09:13:00Z acp-agent[4710] <- editor {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"m\"}\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// continueTrace adds the answers that were missing to a trace of writeTrace.
func continueTrace(t testing.TB, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString(`2026-11-23T09:12:20Z acp-agent[4710] <- opencode[4711] {"jsonrpc":"2.0","id":4,"result":{}}
2026-11-23T09:12:20.003Z acp-agent[4710] -> editor {"jsonrpc":"2.0","id":3,"result":{}}
`)
	require.NoError(t, err)
}
