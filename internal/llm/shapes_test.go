package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sseOf returns the events of a stream with this data.
func sseOf(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// What a server rejects is sent in another form, at once and from then on, in each format.
//
// Clause B6.
func TestShapesOfRequests(t *testing.T) {
	half := 0.5
	for name, test := range map[string]struct {
		api           API
		model         string
		said          string
		without, with string
	}{
		"marks": {Anthropic, "", `{"message":"system.0.cache_control: Extra inputs are not permitted"}`,
			"cache_control", `"system":"Be kind."`},
		"display": {Anthropic, "claude-opus-5", `{"message":"thinking.adaptive.display: Extra inputs are not permitted"}`,
			`"display"`, `"adaptive"`},
		"levels": {Anthropic, "claude-opus-5", `{"message":"output_config: Extra inputs are not permitted"}`,
			"output_config", `"budget_tokens":24000`},
		"adaptive thinking": {Anthropic, "claude-opus-5", `{"message":"thinking: Input tag 'adaptive' found using 'type' ` +
			`does not match any of the expected tags: 'disabled', 'enabled'"}`, "adaptive", `"budget_tokens":24000`},
		"a budget": {Anthropic, "", `{"message":"\"thinking.type.enabled\" is not supported for this model. Use ` +
			`\"thinking.type.adaptive\" and \"output_config.effort\""}`, "budget_tokens", `"adaptive"`},
		"a limit": {Anthropic, "", `{"message":"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m"}`,
			`"max_tokens":8192`, `"max_tokens":4096`},
		"any limit": {Anthropic, "", `{"detail":[{"loc":["body","max_tokens"],"msg":"Extra inputs are not permitted"}]}`,
			`"max_tokens"`, `"stream"`},
		"a limit of responses": {Responses, "", `{"message":"Unsupported parameter: 'max_output_tokens'"}`,
			`"max_output_tokens"`, `"stream"`},
		"a temperature": {Anthropic, "claude-3-opus", `{"message":"temperature: not for this model"}`, `"temperature"`, `"stream"`},
		"a limit of chat": {OpenAI, "", `{"message":"max_tokens is too large: 10000. This model supports at most 4096 ` +
			`completion tokens, whereas you provided 10000."}`, `"max_tokens":10000`, `"max_tokens":4096`},
		"a range": {OpenAI, "", `{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"}`,
			`"max_tokens":10000`, `"max_tokens":8192`},
		"no content": {OpenAI, "", `{"detail":[{"loc":["body","messages",1,"content"],"msg":"Input should be a valid string"}]}`,
			`"content":null`, `"content":""`},
		"system prompts": {OpenAI, "", `{"message":"System role not supported"}`, `"system"`, `"content":"Be kind.\n\nHi"`},
		"a member": {OpenAI, "", `{"message":"messages.1.reasoning_details: property is unsupported"}`,
			"reasoning_details", `"stream"`},
		"a member of a call": {Anthropic, "", `{"message":"messages.1.content.0.tool_use.caller: Extra inputs are not permitted"}`,
			`"caller"`, `"stream"`},
		"a phase": {Responses, "", `{"message":"Unknown parameter: 'input[1].phase'."}`, `"phase"`, `"stream"`},
	} {
		t.Run(name, func(t *testing.T) {
			count := 0
			c := asking(t, test.api, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if count++; strings.Contains(string(body), test.without) ||
					!strings.Contains(string(body), test.with) {
					status(400, `{"error":`+test.said+`}`)(w, r)
				} else if test.api == Anthropic {
					says(sseOf(`{"type":"message_stop"}`))(w, r)
				} else {
					says(sseOf(`{"choices":[{"delta":{},"finish_reason":"stop"}],"type":"response.completed"}`))(w, r)
				}
			})
			c.model.Name = test.model
			c.model = c.format.complete(c.model)
			if test.api == OpenAI {
				c.model.MaxTokens = 10_000
			}
			if strings.HasPrefix(test.model, "claude-opus") {
				c.model.MaxTokens = 32_000
			} else if test.api == Responses {
				c.model.MaxTokens = 1000
			}
			from := c.model.Origin()
			r := Request{System: "Be kind.", Messages: []Message{UserText("Hi"),
				{Assistant, []Part{Thinking{From: from, Attached: []byte(`{"reasoning_details":[1]}`)},
					ToolCall{ID: "1", Name: "read", From: from, Attached: []byte(`{"caller":{}}`)}}},
				{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}}}}}
			switch {
			case name == "a temperature":
				r.Temperature = &half
			case test.api == Anthropic:
				r.Effort = "high"
				r.Messages[1].Parts = r.Messages[1].Parts[1:]
			case test.api == Responses:
				r.Messages[1].Parts = []Part{Text("Hello"), Thinking{From: from, Attached: []byte(`{"phase":"x"}`)},
					r.Messages[1].Parts[1]}
			}
			if test.api == Anthropic && name != "a member of a call" { // it has not thought yet
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
