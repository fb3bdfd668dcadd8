package sessionstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestParseUpdate(t *testing.T) {
	for raw, kind := range map[string]sessionstore.Kind{
		`{"update":{"sessionUpdate":"plan","entries":[]}}`:                                   "plan",
		`{"update":{"sessionUpdate":"usage_update"},"_meta":{}}`:                             sessionstore.UsageUpdate,
		"{\n \"_meta\": {},\n \"update\": {\"x\": 1, \"sessionUpdate\": \"tool_call\"}}":     sessionstore.ToolCall,
		`{"update":{"sessionUpdate":"tool\u005fcall"}}`:                                      sessionstore.ToolCall,
		`{"update":{"sessionUpdate":"From The Future 2"}}`:                                   "From The Future 2",
		`{"update":{"sessionUpdate":""}}`:                                                    "",
		`{"update":{"sessionUpdate":7}}`:                                                     "",
		`{"update":{}}`:                                                                      "",
		`{"update":{"sessionUpdate":"plan","entries":[],"entries":["twice"]}}`:               "plan",
		`{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"\ud800"}}}`:     sessionstore.AgentMessageChunk,
		"{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":\"\xff\"}}":      sessionstore.AgentMessageChunk,
		`{"update":{"content":{"sessionUpdate":"plan"},"sessionUpdate":"tool_call_update"}}`: sessionstore.ToolCallUpdate,
	} {
		u, err := sessionstore.ParseUpdate([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, kind, u.Kind, raw)
		require.Equal(t, raw, u.String())
		require.Equal(t, u, sessionstore.StoredUpdate([]byte(raw)))
	}
	for _, raw := range []string{
		``, `null`, `[]`, `{}`, `{"update":null}`, `{"update":[]}`, `{"update":{}`, `{"update":{}} {}`,
		`{"update":{"sessionUpdate":"plan"}`, `{"update":{"sessionUpdate":"plan"}}}`, `{"update":{"sessionUpdate":"plan`, `{"update":{"sessionUpdate":"plan"]}}`,
	} {
		_, err := sessionstore.ParseUpdate([]byte(raw))
		require.Error(t, err, raw)
	}
}

func FuzzParseUpdate(f *testing.F) {
	f.Add([]byte(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`), []byte(`{"update":{}}`))
	f.Add([]byte("{\n\"update\":{}}"), []byte(`{"update":{"sessionUpdate":"usage_update"}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		one, err := sessionstore.ParseUpdate(a)
		if err != nil {
			return
		}
		two, err := sessionstore.ParseUpdate(b)
		if err != nil {
			return
		}
		history, states := sessionstore.Split([]update{one, two, one})
		for _, u := range append(joined(t, history), states...) {
			require.NotContains(t, u.String(), "\n")
			again, err := sessionstore.ParseUpdate(u.Raw)
			require.NoError(t, err)
			require.Equal(t, again, u)
		}
	})
}

// Clause A37.
func TestKinds(t *testing.T) {
	var states []sessionstore.Kind
	for _, k := range protocol.UpdateKinds() {
		kind := sessionstore.Kind(k.Name)
		if kind.IsState() {
			states = append(states, kind)
		}
		needs, known := kind.Needs()
		require.True(t, known)
		require.Equal(t, k.Needs, needs)
	}
	require.Equal(t, sessionstore.StateKinds(), states)
	for kind, want := range map[sessionstore.Kind]bool{"_own": true, "later": false, "": false} {
		needs, known := kind.Needs()
		require.Equal(t, want, known)
		require.Empty(t, needs)
		require.False(t, kind.IsState())
	}
}
