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

// Thoughts in the content of an answer are sent back there, before its text: Mistral rejects them
// elsewhere.
func TestThoughtsInTheContent(t *testing.T) {
	m := Model{Name: "magistral", BaseURL: "https://api.mistral.ai/v1"}
	thinking := func(text string) Thinking {
		return Thinking{From: m.Origin(), Attached: json.RawMessage(
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + text + `"}]}]}`)}
	}
	request := Request{Messages: m.returned([]Message{
		UserText("Go"),
		{Assistant, []Part{thinking("Hm."), Text("I look."),
			ToolCall{ID: "1", Name: "now", Arguments: `{}`}}},
		{User, []Part{ToolResult{ID: "1", Content: []Part{Text("8:00")}}}},
		{Assistant, []Part{thinking("So."), ToolCall{ID: "2", Name: "now", Arguments: `{}`}}},
		{User, []Part{ToolResult{ID: "2", Content: []Part{Text("8:01")}}}},
	})}
	body := string(encodeChat(m, request, variant{}))
	require.Contains(t, body, `"content":[{"thinking":[{"text":"Hm.","type":"text"}],`+
		`"type":"thinking"},{"text":"I look.","type":"text"}],"role":"assistant"`)
	require.Contains(t, body, `"content":[{"thinking":[{"text":"So.","type":"text"}],`+
		`"type":"thinking"}],"role":"assistant"`)
	require.NotContains(t, body, "reasoning_content")
	text := Thinking{From: m.Origin(), Attached: json.RawMessage(`{"content":"Hm. "}`)}
	body = string(encodeChat(m, Request{Messages: m.returned([]Message{{Assistant, []Part{text, Text("I look.")}}})},
		variant{}))
	require.Contains(t, body, `"content":"Hm. I look."`)
}

// Thoughts that arrive as reasoning go back under this name, unless they are also among the
// details.
func TestThoughtsAsReasoning(t *testing.T) {
	for delta, want := range map[string]string{
		`{"reasoning":"Hm"}`:                          `{"reasoning":"Hm"}`,
		`{"reasoning":"Hm","reasoning_content":"Hm"}`: ``,
		`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}`: `` +
			`{"reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}`,
	} {
		events, failed := ask(t, asking(t, OpenAI, says(chunk(delta), finished)))
		require.Nil(t, failed)
		require.Equal(t, want, string(events[1].(Thinking).Attached))
	}
}

// A server's chat completions and responses have the same address, but expect back other things.
func TestOriginOfResponses(t *testing.T) {
	m := Model{BaseURL: "https://example.com/v1", Name: "m"}
	chat := m.Origin()
	m.API = Responses
	require.NotEqual(t, chat, m.Origin())
}
