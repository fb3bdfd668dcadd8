package llm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenAIRequest(t *testing.T) {
	model := Model{Name: "m", BaseURL: "http://127.0.0.1:11434/v1"}
	half := 0.5
	image := Image{MediaType: "image/png", Data: []byte("png")}
	request := Request{
		System: "Be <brief> & kind.", Effort: "low", Temperature: &half, Stop: []string{"END"}, MaxTokens: 100,
		Tools: []Tool{
			{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
			{Name: "now", Schema: json.RawMessage(`{"type":"object"}`)},
		},
		Messages: []Message{
			UserText("Look"),
			{User, []Part{Text("at this:"), image}},
			{Assistant, []Part{
				Thinking{Model: "m", Text: "Hm."}, Thinking{Model: "other", Text: "Oh."}, Text("I read."),
				ToolCall{"1", "read", `{"path":"a"}`}, ToolCall{"2", "read", `{"path":`}, ToolCall{"3", "now", `null`},
			}},
			{User, []Part{ToolResult{ID: "1", Content: []Part{Text("A"), image, Text("B")}}, Text("The folders changed.")}},
			{User, []Part{ToolResult{ID: "2", Content: []Part{Text("not JSON")}, Failed: true}, ToolResult{ID: "3"}}},
			{Assistant, []Part{ToolCall{"4", "now", `{}`}}},
			{User, []Part{ToolResult{ID: "4", Content: []Part{Text("8:00")}}}},
			{Assistant, []Part{Text("Done.")}},
			UserText("Thanks"),
		},
	}
	const messages = `[
		{"role":"system","content":"Be <brief> & kind."},
		{"role":"user","content":[{"type":"text","text":"Look"},{"type":"text","text":"at this:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]},
		{"role":"assistant","content":"I read.","reasoning_content":"Hm.","tool_calls":[
			{"id":"1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},
			{"id":"2","type":"function","function":{"name":"read","arguments":"{}"}},
			{"id":"3","type":"function","function":{"name":"now","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"1","content":"A\n\nB"},
		{"role":"tool","tool_call_id":"2","content":"not JSON"},
		{"role":"tool","tool_call_id":"3","content":""},
		{"role":"user","content":[{"type":"text","text":"The images in the result of the tool call 1:"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"The folders changed."}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"4","type":"function","function":{"name":"now","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"4","content":"8:00"},
		{"role":"assistant","content":"Done."},
		{"role":"user","content":"Thanks"}]`

	body, err := openAIFormat{}.encode(model, request)
	require.NoError(t, err)
	require.Contains(t, string(body), "<brief> &")
	require.JSONEq(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"reasoning_effort":"low","temperature":0.5,"stop":["END"],
		"tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},
			{"type":"function","function":{"name":"now","description":"","parameters":{"type":"object","properties":{}}}}],
		"messages":`+messages+`}`, string(body))

	member := func(m Model, r Request, name string) string {
		body, err := openAIFormat{}.encode(m, r)
		require.NoError(t, err)
		var asked map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &asked))
		return string(asked[name])
	}
	t.Run("limits of tokens", func(t *testing.T) {
		openAI := Model{BaseURL: "https://api.openai.com/v1", MaxTokens: 50}
		require.Equal(t, "50", member(openAI, request, "max_completion_tokens"))
		require.Empty(t, member(openAI, request, "max_tokens"))
		require.Empty(t, member(model, Request{}, "max_tokens"))
		require.Empty(t, member(model, Request{}, "temperature"))
	})
	t.Run("models that must have thought", func(t *testing.T) {
		deepSeek := Model{Name: "m", BaseURL: "https://api.deepseek.com"}
		got := member(deepSeek, request, "messages")
		require.Equal(t, 3, strings.Count(got, `"reasoning_content":`))
		require.Contains(t, got, `"content":"Done.","reasoning_content":" "`)
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
		require.Contains(t, string(asked["messages"]), "[image, which this model cannot see]")
		require.IsType(t, image, request.Messages[1].Parts[1])
	})
}

// Event orders of which there is no recorded stream.
func TestOpenAIToolCalls(t *testing.T) {
	const first = `{"id":"1","index":0,"function":{"name":"read","arguments":"{\"a\":"}}`
	read := func(id, arguments string) Event { return ToolCall{id, "read", arguments} }
	for name, test := range map[string]struct {
		finish string
		pieces []string
		want   []Event
	}{
		"a new ID for each piece":      {"tool_calls", []string{first, `{"id":"x","index":0,"function":{"arguments":"1}"}}`}, []Event{read("1", `{"a":1}`)}},
		"the name in each piece":       {"tool_calls", []string{first, `{"index":0,"function":{"name":"read","arguments":"1}"}}`}, []Event{read("1", `{"a":1}`)}},
		"an empty ID in each piece":    {"tool_calls", []string{first, `{"id":"","index":0,"function":{"name":"","arguments":"1}"}}`}, []Event{read("1", `{"a":1}`)}},
		"pieces in turns":              {"tool_calls", []string{first, `{"id":"2","index":1,"function":{"name":"read","arguments":"{"}}`, `{"index":0,"function":{"arguments":"1}"}}`, `{"index":1,"function":{"arguments":"}"}}`}, []Event{read("1", `{"a":1}`), read("2", `{}`)}},
		"no index":                     {"tool_calls", []string{`{"id":"1","function":{"name":"read","arguments":"{"}}`, `{"function":{"arguments":"}"}}`, `{"id":"2","function":{"name":"read","arguments":"{}"}}`}, []Event{read("1", `{}`), read("2", `{}`)}},
		"an object":                    {"stop", []string{`{"id":"1","index":0,"function":{"name":"read","arguments":{"a":1}}}`}, []Event{read("1", `{"a":1}`)}},
		"null":                         {"function_call", []string{`{"id":"1","index":0,"function":{"name":"read","arguments":null}}`}, []Event{read("1", `{}`)}},
		"cut off by the limit":         {"length", []string{`{"id":"0","index":0,"function":{"name":"read","arguments":"{}"}}`, strings.Replace(first, `"index":0`, `"index":1`, 1)}, []Event{read("0", `{}`)}},
		"cut off before the arguments": {"length", []string{`{"id":"1","index":0,"function":{"name":"read","arguments":""}}`}, nil},
		"cut off by a filter":          {"content_filter", []string{first}, nil},
		"no calls":                     {"tool_calls", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var stream strings.Builder
			for _, piece := range test.pieces {
				stream.WriteString(chunk(`{"tool_calls":[` + piece + `]}`))
			}
			stream.WriteString(`data: {"choices":[{"delta":{},"finish_reason":"` + test.finish + `"}]}` + "\n\n")
			events, failed := ask(t, asking(t, OpenAI, says(stream.String())))
			require.Nil(t, failed)
			reason := events[len(events)-1].(Finish).Reason
			switch {
			case test.finish == "length":
				require.Equal(t, Length, reason)
			case test.finish == "content_filter":
				require.Equal(t, Refused, reason)
			case test.pieces == nil:
				require.Equal(t, Stopped, reason)
			default:
				require.Equal(t, CallsTools, reason)
			}
			require.Equal(t, test.want, append([]Event(nil), events[:len(events)-1]...))
		})
	}

	t.Run("without IDs", func(t *testing.T) {
		same := `{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{}"}}]}`
		events, failed := ask(t, asking(t, OpenAI, says(chunk(same), chunk(same), finished)))
		require.Nil(t, failed)
		require.Len(t, events, 3)
		require.NotEqual(t, events[0].(ToolCall).ID, events[1].(ToolCall).ID)
	})
}
