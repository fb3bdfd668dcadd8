package llm

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// LiteLLM sends the thoughts of Claude as one element for each piece, the last with the signature
// (https://github.com/BerriAI/litellm/issues/29428).
func TestThoughtsInPiecesAreJoined(t *testing.T) {
	var pieces []json.RawMessage
	for _, piece := range []string{
		`{"type":"thinking","thinking":"The file ","signature":""}`,
		`{"type":"thinking","thinking":"is small.","signature":""}`,
		`{"type":"thinking","thinking":"","signature":"c2ln"}`,
		`{"type":"thinking","thinking":"Read it.","signature":""}`,
		`{"type":"thinking","thinking":"","signature":"dHdv"}`,
		`{"type":"redacted_thinking","data":"cmVk"}`,
	} {
		pieces = append(pieces, json.RawMessage(`{"thinking_blocks":[`+piece+`]}`))
	}
	require.JSONEq(t, `{"thinking_blocks":[
		{"type":"thinking","thinking":"The file is small.","signature":"c2ln"},
		{"type":"thinking","thinking":"Read it.","signature":"dHdv"},
		{"type":"redacted_thinking","data":"cmVk"}]}`, string(joinMembers(pieces)))
}

// A server's chat completions and responses have the same address, but expect back other things.
func TestOriginOfResponses(t *testing.T) {
	m := Model{BaseURL: "https://example.com/v1", Name: "m"}
	chat := m.Origin()
	m.API = Responses
	require.NotEqual(t, chat, m.Origin())
}
