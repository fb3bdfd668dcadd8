package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The phase of what the model has said goes back with it.
func TestResponsesPhase(t *testing.T) {
	m := Model{Name: "gpt-5.4", API: Responses}
	said := Thinking{From: m.Origin(), Attached: json.RawMessage(`{"phase":"commentary"}`)}
	body := encodeResponses(m, Request{Messages: []Message{
		UserText("Look"), {Assistant, []Part{Text("I look."), said,
			ToolCall{ID: "1", Name: "read", Arguments: "{}"}}},
		{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}}},
		{Assistant, []Part{Text("It is A.")}},
	}}, variant{})
	require.Contains(t, string(body), `{"content":[{"text":"I look.","type":"output_text"}],`+
		`"phase":"commentary","role":"assistant","type":"message"},{"arguments":"{}",`)
	require.Equal(t, 1, strings.Count(string(body), "phase"))
}

// encrypted returns what a server has sent of a thought.
func encrypted(content string) json.RawMessage {
	return json.RawMessage(`{"type":"reasoning","id":"rs_1","encrypted_content":"` + content +
		`","summary":[]}`)
}

// called is a conversation in which the model has thought and called a tool.
func called(m Model, thought Part) []Message {
	switch p := thought.(type) {
	case Thinking:
		p.From = m.Origin()
		thought = p
	case ToolCall:
		p.From = m.Origin()
		thought = p
	}
	return []Message{UserText("Look"), {Assistant, []Part{thought,
		ToolCall{ID: "1", Name: "read", Arguments: "{}"},
	}}, {User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}}}}
}

// A thought goes back if it is complete: the server does not store any.
func TestIncompleteThoughts(t *testing.T) {
	returns := func(thought string) bool {
		m := Model{Name: "m", API: Responses}
		request := Request{Messages: called(m, Thinking{Attached: json.RawMessage(thought)})}
		body := string(encodeResponses(m, request, variant{}))
		return strings.Contains(body, `"type":"reasoning"`)
	}
	require.True(t, returns(string(encrypted("x"))))
	require.True(t, returns(
		`{"type":"reasoning","content":[{"type":"reasoning_text","text":"Hm"}]}`))
	require.False(t, returns(`{"type":"reasoning","id":"rs_1","summary":[]}`))
	require.False(t, returns(
		`{"type":"reasoning","content":[],"summary":[{"type":"summary_text","text":"Counting"}]}`))
}

// Servers that do not encrypt thoughts are not asked to.
func TestPlainThoughts(t *testing.T) {
	asks := func(rejection string) bool {
		body := string(encodeResponses(Model{Name: "m"}, Request{}, taught(rejection)))
		return strings.Contains(body, "encrypted_content")
	}
	require.False(t, asks(`{"error":{"message":"Encrypted content is not supported with this model.",`+
		`"param":"include"}}`))
	require.False(t, asks(`{"error":{"message":"Unknown parameter: 'include'."}}`))
	require.False(t, asks(`{"detail":[{"loc":["body","include"],"msg":"Extra inputs are not permitted"}]}`))
	require.True(t, asks(
		`{"error":{"message":"Round-trip the item with its namespace field included."}}`))
	require.True(t, asks(`{"error":{"message":"The encrypted content x could not be verified."}}`))
}
