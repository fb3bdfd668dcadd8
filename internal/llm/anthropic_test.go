package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// encoded returns the body of a request for the model with this name, as the server decodes it.
func encoded(t *testing.T, m Model, r Request) map[string]any {
	t.Helper()
	m.MaxTokens = 8192
	r.Messages = m.returned(r.Messages)
	var asked map[string]any
	if err := json.Unmarshal(encodeAnthropic(m, r, variant{}), &asked); err != nil {
		t.Fatal(err)
	}
	return asked
}

func TestAnthropicRequest(t *testing.T) {
	const name = "claude-opus-5"
	asked := encoded(t, Model{Name: name}, Request{
		System: "Be brief.",
		Tools: []Tool{{Name: "read", Description: "Reads a file.",
			Schema: json.RawMessage(`{"type":"object"}`)}},
		Stop: []string{"END"},
		Messages: []Message{
			UserText("Look"),
			{Role: User, Parts: []Part{Text(""), Text(" \n"),
				Media{MediaType: "image/png", Data: []byte("png")}}},
			{Role: Assistant, Parts: []Part{
				Thinking{From: Model{Name: name}.Origin(), Text: "Hm.", Signature: "c2ln"},
				Thinking{From: Model{Name: name}.Origin(), Redacted: "cmVk"},
				Thinking{From: "claude-opus-4-8", Text: "Oh.", Signature: "c2ln"},
				Text("I read."),
				ToolCall{ID: "1", Name: "read", Arguments: `{"path":"a"}`},
				ToolCall{ID: "2", Name: "read", Arguments: `{"path":`},
				ToolCall{ID: "3", Name: "read", Arguments: `null`},
			}},
			{Role: User, Parts: []Part{
				ToolResult{ID: "1", Content: []Part{Text("A"),
					Media{MediaType: "image/png", Data: []byte("png")}}},
				Text("The folders changed."),
				ToolResult{ID: "2", Content: []Part{Text("not JSON")}, Failed: true},
			}},
			{Role: User, Parts: []Part{ToolResult{ID: "3", Content: []Part{Text("\n")}}}},
		},
	})
	want, err := os.ReadFile("testdata/anthropic-request.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(strictjson.Encode(asked)))
}

// The version of the API is a part of its paths, whether the address ends with it or not.
func TestAnthropicAddress(t *testing.T) {
	for _, base := range []string{"", "/", "/v1", "/v1/"} {
		asked := ""
		c := asking(t, Anthropic, func(_ http.ResponseWriter, r *http.Request) {
			asked = fmt.Sprint(r.Method, r.URL.Path, r.Header["Anthropic-Version"])
		})
		c.model = New(Model{API: Anthropic, BaseURL: c.model.BaseURL + base}).model
		ask(t, c)
		if asked != "POST/v1/messages[2023-06-01]" {
			t.Errorf("base %q: asked %s", base, asked)
		}
	}
}

func TestAnthropicMaxTokens(t *testing.T) {
	for name, want := range map[string]int{"claude-opus-4-20250514": 32_000,
		"claude-sonnet-5": 32_000, "claude-3-5-haiku-20241022": 8_192, "qwen3": 8_192} {
		if got := New(Model{API: Anthropic, Name: name}).Model().MaxTokens; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestAnthropicThinking(t *testing.T) {
	const adaptive = `{"display":"summarized","type":"adaptive"} {"effort":"high"}`
	const budget = `{"budget_tokens":6144,"type":"enabled"} null`
	for _, test := range []struct{ name, effort, thinking, temperature string }{
		{"claude-opus-5-5", "high", adaptive, "null"},
		{"claude-opus-5-5", "", "null null", "null"},
		{"claude-mythos-preview", "high", adaptive, "null"},
		{"anthropic/claude-opus-4.7", "high", adaptive, "null"},
		{"anthropic.claude-opus-4-6-v1", "high", adaptive, "null"},
		{"claude-sonnet-4-6[1m]", "", "null null", "0.5"},
		{"claude-haiku-4-5-20251001", "high", budget, "null"},
		{"claude-opus-4-20250514", "high", budget, "null"},
		{"claude-opus-4@20250514", "high", budget, "null"},
		{"claude-3-7-sonnet-latest", "high", budget, "null"},
		{"claude-3-5-haiku-20241022", "high", "null null", "0.5"},
		{"Claude-Instant-1.2", "high", "null null", "0.5"},
		{"qwen3", "high", budget, "null"},
		{"qwen3", "medium", `{"budget_tokens":4096,"type":"enabled"} null`, "null"},
		{"qwen3", "low", `{"budget_tokens":2048,"type":"enabled"} null`, "null"},
		{"qwen3", "", "null null", "0.5"},
	} {
		t.Run(fmt.Sprint(test.name, " ", test.effort), func(t *testing.T) {
			half := 0.5
			asked := encoded(t, Model{Name: test.name},
				Request{Effort: test.effort, Temperature: &half,
					Messages: []Message{UserText("Hi")}})
			if got := string(strictjson.Encode(asked["thinking"])) + " " +
				string(strictjson.Encode(asked["output_config"])); got != test.thinking {
				t.Errorf("thinking: got %s, want %s", got, test.thinking)
			}
			if got := string(strictjson.Encode(asked["temperature"])); got != test.temperature {
				t.Errorf("temperature: got %s, want %s", got, test.temperature)
			}
		})
	}

	t.Run("a short answer", func(t *testing.T) {
		for _, name := range []string{"qwen3", "claude-opus-5"} {
			asked := encoded(t, Model{Name: name}, Request{Effort: "high", MaxTokens: 1000,
				Messages: []Message{UserText("Hi")}})
			if asked["thinking"] != nil || asked["max_tokens"] != 1000.0 {
				t.Errorf("got %v", asked)
			}
		}
	})

	t.Run("thought before, but not now", func(t *testing.T) {
		for name, kept := range map[string]bool{"claude-haiku-4-5": false, "claude-opus-4-6": false,
			"claude-opus-5": true, "qwen3": true} {
			asked := encoded(t, Model{Name: name}, Request{Messages: []Message{
				UserText("Hi"),
				{Assistant, []Part{Thinking{From: Model{Name: name}.Origin(), Text: "Hm."}}},
				{Assistant, []Part{Thinking{From: Model{Name: name}.Origin(), Text: "Hm."},
					ToolCall{ID: "1", Name: "read"}}},
				{User, []Part{ToolResult{ID: "1"}}},
			}})
			if got := strings.Contains(string(strictjson.Encode(asked["messages"])),
				"Hm."); got != kept {
				t.Errorf("%s: sent what it thought: %v, want %v", name, got, kept)
			}
		}
	})

	call := func(first ...Part) Message {
		return Message{Assistant, append(first, ToolCall{ID: "1", Name: "read"})}
	}
	result := Message{User, []Part{ToolResult{ID: "1"}}}
	thought := Thinking{From: Model{Name: "qwen3"}.Origin(), Text: "Hm."}
	for name, test := range map[string]struct {
		messages []Message
		thinks   bool
	}{
		"thought before the first call": {[]Message{UserText("Hi"), call(thought), result,
			call(), result}, true},
		"thought before a later call": {[]Message{UserText("Hi"), call(), result,
			call(thought), result}, false},
		"another model thought": {[]Message{UserText("Hi"),
			call(Thinking{From: "glm", Text: "Hm."}), result}, false},
		"thought nothing in earlier turns": {[]Message{UserText("Hi"), call(), result,
			{Assistant, []Part{Text("So")}}, UserText("Go")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := encoded(t, Model{Name: "qwen3"},
				Request{Effort: "high", Messages: test.messages})
			if got := asked["thinking"] != nil; got != test.thinks {
				t.Errorf("asked to think: %v, want %v", got, test.thinks)
			}
		})
	}
}
