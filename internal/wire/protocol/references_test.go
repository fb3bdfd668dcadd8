package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Clause A36. Only known ids change, and all other bytes stay.
func TestMapUpdateReferences(t *testing.T) {
	replace := func(id string) string {
		if id == "a" {
			return "A"
		}
		return id
	}
	const odd = `"x": 1.0 ,"u":"\u00e4"`
	for _, test := range []struct{ kind, given, want string }{
		{"subagent_update", `{` + odd + `,"update":{"sessionUpdate":"subagent_update",` + odd +
			`,"sessionId":"a"}}`, `{` + odd + `,"update":{"sessionUpdate":"subagent_update",` + odd +
			`,"sessionId":"A"}}`},
		{"subagent_update", `{"update":{"sessionId": "b" }}`, `{"update":{"sessionId": "b" }}`},
		{"session_message", `{"update":{"senderSessionId":"a","recipientSessionId":null,"m":"a"}}`,
			`{"update":{"senderSessionId":"A","recipientSessionId":null,"m":"a"}}`},
		{"session_message", `{"update":{"recipientSessionId":"\u0061"}}`,
			`{"update":{"recipientSessionId":"A"}}`},
		{"tool_call", `{"update":{"content":[{"type":"content","sessionId":"a"}, ` +
			`{"type":"session","sessionId":"a","n":1e0}]}}`,
			`{"update":{"content":[{"type":"content","sessionId":"a"},` +
				`{"type":"session","sessionId":"A","n":1e0}]}}`},
		{"tool_call_update", `{"update":{"content":[ {"type":"session","sessionId":"b"} ]}}`,
			`{"update":{"content":[ {"type":"session","sessionId":"b"} ]}}`},
		{"plan", `{"update":{"sessionId":"a"}}`, `{"update":{"sessionId":"a"}}`},
	} {
		got := protocol.MapUpdateReferences(test.kind, json.RawMessage(test.given), replace)
		require.Equal(t, test.want, string(got), test.given)
	}
}
