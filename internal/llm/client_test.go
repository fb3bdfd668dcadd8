package llm

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// A server that was not written for this client.
func TestStream(t *testing.T) {
	server, err := modelserver.Start()
	require.NoError(t, err)
	defer server.Close()
	for _, api := range []API{OpenAI, Anthropic} {
		t.Run(string(api), func(t *testing.T) {
			testStream(t, New(Model{API: api, BaseURL: server.URL() + "/v1/", Name: "any"}))
		})
	}
}

func testStream(t *testing.T, client *Client) {
	tools := []Tool{{Name: "read_file",
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},` +
			`"required":["path"]}`)}}
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

// What the model thought goes back to it with its tool calls: this server checks the signature.
func TestThinkingGoesBack(t *testing.T) {
	server, err := modelserver.Start()
	require.NoError(t, err)
	defer server.Close()
	client := New(Model{API: Anthropic, BaseURL: server.URL(), Name: "qwen3"})
	messages := []Message{UserText(modelserver.Prompt("Look.",
		modelserver.Together(modelserver.Think("One."), modelserver.Say("I look."),
			modelserver.Read("/a"), modelserver.Read("/b")),
		modelserver.Together(modelserver.Think("Two."), modelserver.Read("/c")),
	))}
	for step := range 3 {
		answer, results := Message{Role: Assistant}, Message{Role: User}
		for e, err := range client.Stream(t.Context(), Request{Messages: messages, Effort: "high",
			Tools: []Tool{
				{Name: "read_file",
					Schema: json.RawMessage(`{"type":"object",` +
						`"properties":{"path":{"type":"string"}},"required":["path"]}`)},
			}}) {
			require.NoError(t, err)
			switch e := e.(type) {
			case Thinking:
				answer.Parts = append(answer.Parts, e)
			case TextDelta:
				answer.Parts = append(answer.Parts, Text(e))
			case ToolCall:
				answer.Parts = append(answer.Parts, e)
				results.Parts = append(results.Parts,
					ToolResult{ID: e.ID, Content: []Part{Text("nothing")}})
			case Finish:
				require.Equal(t, step < 2, e.Reason == CallsTools)
			}
		}
		messages = append(messages, answer, results)
	}
	requests := server.Requests()
	require.Len(t, requests, 3)
	require.Equal(t, []string{"One.", "Two."}, requests[2].Of(modelserver.Thought))
}
