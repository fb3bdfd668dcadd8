package llm

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func TestOpenAIRequest(t *testing.T) {
	model := Model{Name: "m", BaseURL: "http://127.0.0.1:11434/v1"}
	half := 0.5
	image := Media{MediaType: "image/png", Data: []byte("png")}
	request := Request{
		System: "Be <brief> & kind.", Effort: "low", Temperature: &half,
		Stop: []string{"END"}, MaxTokens: 100,
		Tools: []Tool{
			{Name: "read", Description: "Reads.",
				Schema: json.RawMessage(`{"type":"object",` +
					`"properties":{"path":{"type":"string"}}}`)},
			{Name: "now", Schema: json.RawMessage(`{"type":"object"}`)},
		},
		Messages: []Message{
			UserText("Look"),
			{User, []Part{Text("at this:"), image}},
			{Assistant, []Part{
				Thinking{From: model.Origin(), Text: "Hm."}, Thinking{From: "other",
					Text: "Oh."}, Text("I read."),
				ToolCall{ID: "1", Name: "read", Arguments: `{"path":"a"}`}, ToolCall{ID: "2", Name: "read", Arguments: `{"path":`}, ToolCall{ID: "3", Name: "now", Arguments: `null`},
			}},
			{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A"), image, Text("B")}},
				Text("The folders changed.")}},
			{User, []Part{ToolResult{ID: "2", Content: []Part{Text("not JSON")}, Failed: true},
				ToolResult{ID: "3"}}},
			{Assistant, []Part{ToolCall{ID: "4", Name: "now", Arguments: `{}`}}},
			{User, []Part{ToolResult{ID: "4", Content: []Part{Text("8:00")}}}},
			{Assistant, []Part{Text("Done.")}},
			UserText("Thanks"),
		},
	}
	asked := request
	asked.Messages = model.returned(request.Messages)
	asked.Tools, _ = new(Client).Offer(request.Tools)
	body := encodeChat(model, asked, variant{})
	require.Contains(t, string(body), "<brief> &")
	want, err := os.ReadFile("testdata/openai-request.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(body))

	t.Run("without anything", func(t *testing.T) {
		body := encodeChat(model, Request{Messages: []Message{UserText("Hi")}}, variant{})
		require.JSONEq(t,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},`+
				`"messages":[{"role":"user","content":"Hi"}]}`, string(body))
	})
	t.Run("models without eyes", func(t *testing.T) {
		var asked map[string]json.RawMessage
		c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&asked)
			says(finished)(w, r)
		})
		c.model.TextOnly = true
		for _, err := range c.Stream(t.Context(), request) {
			require.NoError(t, err)
		}
		require.NotContains(t, string(asked["messages"]), "image_url")
		require.Contains(t, string(asked["messages"]),
			"[An image was left out, because you cannot see images.]")
		require.IsType(t, image, request.Messages[1].Parts[1])
	})
}

// A thought level that the user chose is not replaced.
func TestRejectedEffort(t *testing.T) {
	count := 0
	c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
		count++
		status(400,
			`{"error":{"message":"Model m does not support parameter reasoningEffort."}}`)(w, r)
	})
	var last error
	for _, last = range c.Stream(t.Context(), Request{Effort: "high"}) {
	}
	require.EqualError(t, last,
		"Model m does not support parameter reasoningEffort; choose another thought level "+
			"(HTTP status 400)")
	require.Equal(t, 1, count)
}

// Local servers leave thoughts in the text.
func TestOpenAIThinkTags(t *testing.T) {
	for text, want := range map[string]struct{ thought, said string }{
		"<think>Hm.</think>Hello":                  {"Hm.", "Hello"},
		"\n<think>\nHm <b>.\n</think>\n\n Hello\n": {"\nHm <b>.\n", "Hello\n"},
		"<think></think>\n\nHello":                 {"", "Hello"},
		"<think>Hm.</thi":                          {"Hm.</thi", ""},
		"<thinking>Hello":                          {"", "<thinking>Hello"},
		"<thi":                                     {"", "<thi"},
		" Hello <think>":                           {"", " Hello <think>"},
		"a</think>":                                {"", "a</think>"},
		"":                                         {"", ""},
	} {
		for size := 1; size <= len(text)+1; size++ {
			var stream []string
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				stream = append(stream, chunk(`{"content":`+string(strictjson.Encode(rest[:n]))+`}`))
				rest = rest[n:]
			}
			thought, said := "", ""
			body := bodyOf(strings.NewReader(strings.Join(stream, "") + finished))
			require.Nil(t, New(Model{}).read(body, variant{},
				func(e Event) bool {
					switch e := e.(type) {
					case ThinkingDelta:
						require.Empty(t, said)
						thought += string(e)
					case TextDelta:
						said += string(e)
					}
					return true
				}))
			require.Equal(t, want.thought, thought, "%q in pieces of %d", text, size)
			require.Equal(t, want.said, said, "%q in pieces of %d", text, size)
		}
	}
}

// Gateways to models of Anthropic are told what to cache, as
// https://openrouter.ai/docs/features/prompt-caching and
// https://docs.litellm.ai/docs/completion/prompt_caching say, unless they do not accept it.
//
// Clause B3.
func TestMarksForGateways(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	request := Request{System: "Be kind.", Messages: []Message{
		UserText("One"), {Assistant, []Part{ToolCall{ID: "1", Name: "read", Arguments: "{}"}}},
		{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}}},
		{Assistant, []Part{Text("Two")}}, UserText("Three"),
	}}
	claude := Model{Name: "anthropic/claude-sonnet-4.5"}
	body := string(encodeChat(claude, request, variant{}))
	for _, text := range []string{"Be kind.", "A", "Three"} {
		require.Contains(t, body, `"content":[{`+mark+`,"text":"`+text+`","type":"text"}]`)
	}
	require.Equal(t, 3, strings.Count(body, mark))
	require.NotContains(t, string(encodeChat(Model{Name: "qwen/qwen3-coder"}, request, variant{})), mark)
	v := taught(`{"error":{"message":"messages.0.content.0.cache_control: Extra inputs are not permitted"}}`)
	require.NotContains(t, string(encodeChat(claude, request, v)), mark)
}

// The pieces of tool calls that are shown while they arrive are those of the calls, in each format.
func TestCallDeltas(t *testing.T) {
	for file, api := range map[string]API{"openai-tools": OpenAI, "anthropic-tools": Anthropic,
		"responses-tools": Responses} {
		t.Run(file, func(t *testing.T) {
			stream, err := os.ReadFile("testdata/" + file + ".sse")
			require.NoError(t, err)
			var pieces, calls []ToolCall
			r := Request{Messages: []Message{UserText("Hi")}}
			for e, err := range asking(t, api, says(string(stream))).Stream(t.Context(), r) {
				require.NoError(t, err)
				switch e := e.(type) {
				case CallDelta:
					if e.Index == len(pieces) {
						pieces = append(pieces, ToolCall{Name: e.Name})
					}
					pieces[e.Index].Arguments += e.Arguments
				case ToolCall:
					calls = append(calls, ToolCall{Name: e.Name, Arguments: e.Arguments})
				}
			}
			require.NotEmpty(t, calls)
			for i, p := range pieces {
				pieces[i].Arguments = cmp.Or(p.Arguments, "{}")
			}
			require.Equal(t, calls, pieces)
		})
	}
}

// Mistral's server gets an answer of the model between a result and the next message of the user.
// So do others that reject such a message.
//
// Clause B6.
func TestMessagesAfterResults(t *testing.T) {
	const order = `"role":"tool","tool_call_id":"1"},{"content":"Understood.","role":"assistant"},` +
		`{"content":"Go","role":"user"}`
	messages := []Message{UserText("Hi"), {Assistant, []Part{ToolCall{ID: "1", Name: "a"}}},
		{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A")}}, Text("Go")}}}
	own := New(Model{BaseURL: "https://api.mistral.ai/v1"})
	body := own.format.encode(own.model, Request{Messages: messages}, own.learned.now())
	require.Contains(t, string(body), order)
	for name, r := range map[string]http.HandlerFunc{
		"Mistral": status(400, `{"object":"error","message":"Unexpected role 'user' after role `+
			`'tool'","code":"3230"}`),
		"escaped": status(400, `{"message":"Unexpected role \u0027user\u0027 after role `+
			`\u0027tool\u0027"}`),
		"llama.cpp": status(500, `{"error":{"code":500,"message":"Conversation roles must alternate `+
			`user/assistant/user/assistant/..."}}`),
	} {
		count := 0
		c := asking(t, OpenAI, func(w http.ResponseWriter, asked *http.Request) {
			count++
			if body, _ := io.ReadAll(asked.Body); !strings.Contains(string(body), order) {
				r(w, asked)
				return
			}
			says(finished)(w, asked)
		})
		for want := 2; want <= 3; want++ {
			for _, err := range c.Stream(t.Context(), Request{Messages: messages}) {
				require.NoError(t, err, name)
			}
			require.Equal(t, want, count, name)
		}
	}
}

// An answer that consists of thoughts does not leave two messages of the user in a row.
//
// Clause B6.
func TestAnswersOfThoughtsOnly(t *testing.T) {
	c := New(Model{})
	messages := []Message{UserText("Hi"), {Assistant, []Part{Thinking{Text: "Hm"}}}, UserText("Go")}
	body := c.format.encode(c.model, Request{Messages: messages}, c.learned.now())
	require.Contains(t, string(body), `[{"content":"Hi\n\nGo","role":"user"}]`)
}
