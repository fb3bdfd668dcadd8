package interop

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the built-in agent advertises, all of it, and each of it at work.
func TestA1_AllThatIsAdvertisedWorks(t *testing.T) {
	var result struct{ AgentCapabilities json.RawMessage }
	a := start(t)
	a.call("initialize", map[string]any{"protocolVersion": 1}, &result)
	require.JSONEq(t, `{
		"loadSession": true,
		"mcpCapabilities": {"http": true, "sse": true},
		"sessionCapabilities": {"additionalDirectories": {}, "close": {}, "delete": {}, "fork": {}, "list": {}, "resume": {}}
	}`, string(result.AgentCapabilities))

	cwd, lib := folder(t), folder(t)
	id := a.open(cwd, lib)
	params := func() map[string]any {
		return map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{
			map[string]any{"type": "http", "name": "h", "url": "http://127.0.0.1:1/", "headers": []any{}},
			map[string]any{"type": "sse", "name": "s", "url": "http://127.0.0.1:1/", "headers": []any{}},
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
}
