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
