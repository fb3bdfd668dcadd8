package llm

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/modelserver"
)

// A server that was not written for this client.
func TestStream(t *testing.T) {
	server, err := modelserver.Start()
	require.NoError(t, err)
	defer server.Close()
	for _, api := range []API{OpenAI, Anthropic} {
		t.Run(string(api), func(t *testing.T) { testStream(t, New(Model{API: api, BaseURL: server.URL() + "/v1/", Name: "any"})) })
	}
}

func testStream(t *testing.T, client *Client) {
	tools := []Tool{{Name: "read_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	var events []Event
	for e, err := range client.Stream(t.Context(), Request{
		System:   "You are an assistant.",
		Messages: []Message{UserText(modelserver.Prompt("Read it.", modelserver.Read("/a/b.txt")))},
		Tools:    tools,
	}) {
		require.NoError(t, err)
		events = append(events, e)
	}
	require.Len(t, events, 2)
	call := events[0].(ToolCall)
	require.Equal(t, "read_file", call.Name)
	require.JSONEq(t, `{"path":"/a/b.txt"}`, call.Arguments)
	finish := events[1].(Finish)
	require.Equal(t, CallsTools, finish.Reason)
	require.Positive(t, finish.Usage.Input)
	require.Positive(t, finish.Usage.Output)
}
