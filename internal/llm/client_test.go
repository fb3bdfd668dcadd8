package llm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// A server that was not written for this client.
func TestStream(t *testing.T) {
	server, err := modelserver.Start()
	require.NoError(t, err)
	defer server.Close()
	for _, api := range []API{OpenAI, Responses, Anthropic} {
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
		if _, partly := e.(CallDelta); !partly {
			events = append(events, e)
		}
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

// Headers and a query are sent, and what is secret in them is not in errors. They do not follow a
// redirect.
func TestHeadersAndQuery(t *testing.T) {
	var elsewhere, asked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.URL.String())
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Api-Key")+r.Header.Get("User-Agent"))
		if len(asked) == 1 {
			status(401, `{"error":{"message":"wrong key `+testKey+`"}}`)(w, r)
		} else {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	for _, api := range []API{OpenAI, Responses, Anthropic} {
		asked = nil
		c := impatient(t, Model{API: api, BaseURL: server.URL + "/x/?api-version=1&b=2", Name: "a/b",
			Headers: func() (map[string]string, error) {
				return map[string]string{"api-key": testKey, "user-agent": "me"}, nil
			}})
		_, failed := ask(t, c)
		require.Equal(t, KeyRejected, failed.Kind)
		_, err := c.List(t.Context())
		require.ErrorContains(t, err, "redirects to")
		path, list := c.format.paths()
		joint := "?"
		if api == Anthropic {
			joint = "&"
		}
		require.Equal(t, []string{"/x" + path + "?api-version=1&b=2 " + testKey + "me",
			"/x" + list + joint + "api-version=1&b=2 " + testKey + "me"}, asked)
	}
	require.Empty(t, elsewhere)
}
