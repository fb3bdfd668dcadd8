package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a server rejects is sent in another form, at once and from then on, in each format.
//
// Clause B6.
func TestShapesOfRequests(t *testing.T) {
	for _, lines := range records(t, "rejections.txt") {
		t.Run(lines[0], func(t *testing.T) {
			api, model, _ := strings.Cut(lines[1], " ")
			said, without, with := lines[2], lines[3], lines[4]
			count := 0
			c := asking(t, API(api), func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if count++; strings.Contains(string(body), without) || !strings.Contains(string(body), with) {
					status(400, said)(w, r)
				} else {
					says(sseOf(`{"choices":[{"delta":{},"finish_reason":"stop"}],"type":"response.completed"}`,
						`{"type":"message_stop"}`))(w, r)
				}
			})
			c.model.Name, c.model.MaxTokens = model, map[string]int{"openai": 10_000, "responses": 1000}[api]
			c.model = c.format.complete(c.model)
			from := c.model.Origin()
			r := Request{System: "Be kind.", Tools: []Tool{{Name: "now"}}, Messages: []Message{UserText("Hi"),
				{Assistant, []Part{Thinking{From: from, Text: "Hm", Attached: []byte(`{"reasoning_details":[1]}`)},
					ToolCall{ID: "1", Name: "read", From: from, Attached: []byte(`{"caller":{}}`)}}},
				{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}}}, {Assistant, []Part{Text("Later")}},
				UserText("Go")}}
			switch {
			case strings.Contains(without, "temperature"):
				r.Temperature = new(0.5)
			case api == string(Anthropic):
				r.Effort = "high"
				r.Messages[1].Parts = r.Messages[1].Parts[1:]
			case api == string(Responses):
				r.Messages[1].Parts = []Part{Text("Hello"), Thinking{From: from, Attached: []byte(`{"phase":"x"}`)},
					r.Messages[1].Parts[1]}
			}
			if api == string(Anthropic) && !strings.Contains(without, "caller") { // it has not thought yet
				r.Messages = r.Messages[:1]
			}
			for want := 2; want <= 3; want++ {
				for _, err := range c.Stream(t.Context(), r) {
					require.NoError(t, err)
				}
				require.Equal(t, want, count)
			}
		})
	}
}

// What was learned by mistake, or from another server behind a gateway, is corrected by the next
// rejection.
//
// Clause B6.
func TestShapesAreCorrected(t *testing.T) {
	var l learned
	reject := func(said string) variant {
		l.learn([]byte(said), Request{}, 0)
		return l.now()
	}
	require.True(t, l.now().takesLimit())
	require.False(t, reject(`{"message":"max_tokens: Extra inputs are not permitted"}`).takesLimit())
	require.True(t, reject(`{"message":"max_tokens: Field required"}`).takesLimit())
	calls := Message{Assistant, []Part{ToolCall{ID: "1", Name: "read", Arguments: "{}"}}}
	v := reject(`{"message":"content: Input should be a valid string"}`)
	require.Equal(t, "", chatMessages(calls, v)[0]["content"])
	v = reject(`{"message":"text content blocks must be non-empty"}`)
	require.Nil(t, chatMessages(calls, v)[0]["content"])
}

// taught returns what a rejection says about a server.
func taught(rejection string) variant {
	var l learned
	l.learn([]byte(rejection), Request{}, 0)
	return l.now()
}
