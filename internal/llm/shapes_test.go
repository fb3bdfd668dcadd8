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

// Servers leave out events, send a name or arguments in other pieces, or encode them twice. The
// calls and the text are the same.
//
// Clause B4.
func TestShapesOfAnswers(t *testing.T) {
	read := func(id, arguments string) Event { return ToolCall{ID: id, Name: "read", Arguments: arguments} }
	const call = `{"type":"function_call","call_id":"1","name":"read","arguments":"{\"a\":1}"}`
	const other = `{"type":"function_call","call_id":"2","name":"read","arguments":"{}"}`
	const said = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}`
	completed := func(items string) string {
		return `{"type":"response.completed","response":{"status":"completed","output":[` + items + `]}}`
	}
	begun := func(index string) string {
		return `{"type":"response.output_item.added"` + index +
			`,"item":{"type":"function_call","call_id":"1","name":"read","arguments":""}}`
	}
	const start = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"read","input":{}}}`
	const input = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`
	stop := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}`
	}
	const ended = `{"type":"message_stop"}`
	for name, test := range map[string]struct {
		api    API
		stream string
		want   []Event
	}{
		"items only in the whole response": {Responses, sseOf(completed(said + "," + call + "," + other)),
			[]Event{TextDelta("Hello"), read("1", `{"a":1}`), read("2", "{}")}},
		"one item without its end": {Responses, sseOf(`{"type":"response.output_item.done","item":`+call+`}`,
			completed(call+","+other)), []Event{read("1", `{"a":1}`), read("2", "{}")}},
		"text without the end of its item": {Responses, sseOf(
			`{"type":"response.output_text.delta","delta":"Hello"}`,
			completed(`{"type":"reasoning","summary":[]},`+said+","+call)),
			[]Event{TextDelta("Hello"), read("1", `{"a":1}`)}},
		"two texts without ends": {Responses, sseOf(
			`{"type":"response.output_text.delta","output_index":0,"delta":"Hello"}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"!"}`,
			completed(said+","+said)), []Event{TextDelta("Hello"), TextDelta("!")}},
		"arguments only when they are done": {Responses, sseOf(begun(`,"output_index":3`),
			`{"type":"response.function_call_arguments.done","output_index":3,"arguments":"{\"a\":1}"}`,
			`{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"1","name":"read"}}`,
			completed("")), []Event{read("1", `{"a":1}`)}},
		"pieces of arguments without an end": {Responses, sseOf(begun(""),
			`{"type":"response.function_call_arguments.delta","delta":"{\"a\":"}`,
			`{"type":"response.function_call_arguments.delta","delta":"1}"}`, completed("")),
			[]Event{read("1", `{"a":1}`)}},
		"a call that begins and is only in the response": {Responses, sseOf(begun(""), completed(said+","+call)),
			[]Event{TextDelta("Hello"), read("1", `{"a":1}`)}},
		"a call that was cut off": {Responses, sseOf(begun(""),
			`{"type":"response.function_call_arguments.delta","delta":"{\"a\":"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete"}}`), nil},
		"text only when it is done": {Responses, sseOf(
			`{"type":"response.output_text.done","text":"Hello"}`, completed("")), []Event{TextDelta("Hello")}},

		"a block without its end":  {Anthropic, sseOf(start, input, stop("tool_use"), ended), []Event{read("1", `{"a":1}`)}},
		"a block that was cut off": {Anthropic, sseOf(start, strings.Replace(input, `1}`, `1`, 1), stop("max_tokens"), ended), nil},
		"a thought without its end": {Anthropic, sseOf(
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm","signature":"s"}}`,
			stop("end_turn"), ended), []Event{ThinkingDelta("Hm"), Thinking{Text: "Hm", Signature: "s"}}},

		"an object as arguments": {Responses, sseOf(begun(""), strings.Replace(completed(call),
			`"{\"a\":1}"`, `{"a":1}`, 1)), []Event{read("1", `{"a":1}`)}},
		"two calls with one id": {OpenAI,
			chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":1}"}}]}`) +
				chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":2}"}}]}`) +
				finished, []Event{read("1", `{"a":1}`), read("1", `{"a":2}`)}},
		"a name in pieces": {OpenAI, chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"re","arguments":""}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"function":{"name":"ad","arguments":""}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}`) + finished,
			[]Event{read("1", `{"a":1}`)}},
		"the name again": {OpenAI, chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"read","arguments":""}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"read","arguments":"{\"a\":1}"}}]}`) + finished,
			[]Event{read("1", `{"a":1}`)}},
		"arguments that are encoded twice": {OpenAI, chunk(`{"tool_calls":[{"index":0,"id":"1","function":`+
			`{"name":"read","arguments":"\"{\\\"a\\\":1}\""}}]}`) + finished, []Event{read("1", `{"a":1}`)}},
		"a text as arguments": {OpenAI, chunk(`{"tool_calls":[{"index":0,"id":"1","function":`+
			`{"name":"read","arguments":"\"x\""}}]}`) + finished, []Event{read("1", `"x"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			events, failed := ask(t, asking(t, test.api, says(test.stream)))
			require.Nil(t, failed)
			var got []Event
			for _, e := range events[:len(events)-1] {
				if thought, ok := e.(Thinking); ok && thought.Attached != nil {
					continue
				}
				got = append(got, e)
			}
			require.Equal(t, test.want, got)
		})
	}
	t.Run("a function call of an old server", func(t *testing.T) {
		events, failed := ask(t, asking(t, OpenAI, says(
			chunk(`{"function_call":{"name":"read","arguments":""}}`),
			chunk(`{"function_call":{"arguments":"{\"a\":1}"}}`), finished)))
		require.Nil(t, failed)
		require.Equal(t, `{"a":1}`, events[0].(ToolCall).Arguments)
		require.Equal(t, Finish{Reason: CallsTools}, events[1])
	})
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
