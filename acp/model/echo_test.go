package model

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// strictServer answers with random thoughts, texts and calls, and checks that each request has its
// earlier answers with calls exactly as it sent them.
type strictServer struct {
	wire wire

	mu     sync.Mutex
	random *rand.Rand
	n      int
	steps  int              // in this turn
	sent   map[string][]any // answers with calls, by the ID of their first call
	wrong  []string
}

// wire is a wire format as such a server sees it.
type wire struct {
	// answer returns random parts of an answer, with calls if calling is set, and the ID of the
	// first call.
	answer func(s *strictServer, calling bool) (parts []any, call string)
	// write sends it.
	write func(w io.Writer, parts []any)
	// check returns what is wrong with a request.
	check func(s *strictServer, body map[string]any) string
}

func (s *strictServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body map[string]any
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return
	}
	if wrong := s.wire.check(s, body); wrong != "" {
		s.wrong = append(s.wrong, wrong)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q}}`, wrong)
		return
	}
	s.steps = (s.steps + 1) % 4
	parts, call := s.wire.answer(s, s.steps != 0)
	if call != "" {
		s.sent[call] = parts
	}
	s.wire.write(w, parts)
}

// id returns a new ID.
func (s *strictServer) id() string {
	s.n++
	return fmt.Sprintf("id%07d", s.n)
}

// decoded returns a value as it is decoded from JSON.
func decoded(v any) (all any) {
	raw, _ := json.Marshal(v)
	_ = json.Unmarshal(raw, &all)
	return all
}

func events(w io.Writer, all ...any) {
	for _, e := range all {
		raw, _ := json.Marshal(e)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", raw)
	}
}

type object = map[string]any

// anthropicWire has thoughts, also redacted ones, between calls, which must come back in order:
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking
var anthropicWire = wire{
	answer: func(s *strictServer, calling bool) (parts []any, call string) {
		for range 1 + s.random.IntN(3) {
			switch s.random.IntN(3) {
			case 0:
				parts = append(parts, object{"type": "thinking", "thinking": "Hm " + s.id(), "signature": s.id()})
			case 1:
				parts = append(parts, object{"type": "redacted_thinking", "data": s.id()})
			}
			if s.random.IntN(3) == 0 {
				parts = append(parts, object{"type": "text", "text": "I say " + s.id()})
			}
			if calling {
				id := s.id()
				if call == "" {
					call = id
				}
				parts = append(parts, object{"type": "tool_use", "id": id, "name": "read_file",
					"input": object{"path": "a.txt", "offset": s.n}})
			}
		}
		if !calling {
			parts = append(parts, object{"type": "text", "text": "Done " + s.id()})
		}
		return parts, call
	},
	write: func(w io.Writer, parts []any) {
		events(w, object{"type": "message_start", "message": object{"usage": object{"input_tokens": 9}}})
		for i, p := range parts {
			events(w, object{"type": "content_block_start", "index": i, "content_block": p},
				object{"type": "content_block_stop", "index": i})
		}
		events(w, object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}},
			object{"type": "message_stop"})
	},
	check: func(s *strictServer, body map[string]any) string {
		role := ""
		for _, m := range body["messages"].([]any) {
			m := m.(object)
			if m["role"] == role {
				return "roles must alternate"
			}
			role = m["role"].(string)
			content := m["content"].([]any)
			for _, p := range content {
				p := p.(object)
				delete(p, "cache_control")
				id, _ := p["id"].(string)
				if s.sent[id] != nil && !reflect.DeepEqual(decoded(s.sent[id]), decoded(content)) {
					return fmt.Sprintf("`thinking` blocks cannot be modified: %v", content)
				}
			}
		}
		if role != "user" {
			return "the last message must be the user's"
		}
		return ""
	},
}

// responsesWire has encrypted thoughts before its calls and texts, which must come back in order:
// https://developers.openai.com/api/docs/guides/reasoning
var responsesWire = wire{
	answer: func(s *strictServer, calling bool) (parts []any, call string) {
		for range 1 + s.random.IntN(3) {
			if s.random.IntN(2) == 0 {
				parts = append(parts, object{"type": "reasoning", "id": s.id(), "summary": []any{},
					"encrypted_content": s.id()})
			}
			if !calling || s.random.IntN(3) == 0 {
				parts = append(parts, object{"type": "message", "role": "assistant", "content": []any{
					object{"type": "output_text", "text": "I say " + s.id()}}})
			}
			if calling {
				id := s.id()
				if call == "" {
					call = id
				}
				parts = append(parts, object{"type": "function_call", "call_id": id, "name": "read_file",
					"arguments": fmt.Sprintf(`{"path":"a.txt","offset":%d}`, s.n)})
			}
		}
		return parts, call
	},
	write: func(w io.Writer, parts []any) {
		for i, p := range parts {
			events(w, object{"type": "response.output_item.added", "output_index": i, "item": p},
				object{"type": "response.output_item.done", "output_index": i, "item": p})
		}
		events(w, object{"type": "response.completed", "response": object{"status": "completed"}})
	},
	check: func(s *strictServer, body map[string]any) string {
		var got []any
		for _, item := range body["input"].([]any) {
			if item := item.(object); item["type"] != "function_call_output" {
				got = append(got, item)
			}
		}
		for i, item := range got {
			id, _ := item.(object)["call_id"].(string)
			sent := s.sent[id]
			if sent == nil {
				continue
			}
			first := i - slices.IndexFunc(sent, func(p any) bool { return p.(object)["call_id"] == id })
			if first < 0 || first+len(sent) > len(got) ||
				!reflect.DeepEqual(decoded(sent), decoded(got[first:first+len(sent)])) {
				return fmt.Sprintf("Item of type 'reasoning' is not where it was: %v", got)
			}
		}
		return ""
	},
}

// miniMaxWire is chat completions with thoughts in tags, which must come back in them, and roles
// that alternate: https://huggingface.co/MiniMaxAI/MiniMax-M2
var miniMaxWire = wire{
	answer: func(s *strictServer, calling bool) (parts []any, call string) {
		said := "<think>Hm " + s.id() + "</think>\n\nI say " + s.id()
		message := object{"role": "assistant", "content": said}
		if calling {
			call = s.id()
			message["tool_calls"] = []any{object{"id": call, "type": "function", "function": object{
				"name": "read_file", "arguments": fmt.Sprintf(`{"path":"a.txt","offset":%d}`, s.n)}}}
		}
		return []any{message}, call
	},
	write: func(w io.Writer, parts []any) {
		events(w, object{"choices": []any{object{"delta": parts[0], "finish_reason": "stop"}}})
	},
	check: func(s *strictServer, body map[string]any) string {
		last := ""
		for _, m := range body["messages"].([]any) {
			m := m.(object)
			role := m["role"].(string)
			if role == last && role != "tool" {
				return "roles must alternate: " + role
			}
			last = role
			calls, _ := m["tool_calls"].([]any)
			for _, c := range calls {
				sent := s.sent[c.(object)["id"].(string)]
				if sent != nil && !reflect.DeepEqual(decoded(sent[0]), decoded(m)) {
					return fmt.Sprintf("the thoughts were removed: %v", m)
				}
			}
		}
		return ""
	},
}

// What a model has thought between its calls goes back exactly as it was, after cancels, loads,
// summaries and failures too, for each format.
//
// Clause B5, B6.
func TestExactEcho(t *testing.T) {
	for name, test := range map[string]struct {
		wire   wire
		change func(*Model)
	}{
		"Claude":    {anthropicWire, func(m *Model) { m.API, m.Name = Anthropic, "claude-sonnet-5" }},
		"responses": {responsesWire, func(m *Model) { m.API = Responses }},
		"MiniMax":   {miniMaxWire, named("MiniMax-M2")},
	} {
		for seed := range volume.Of(2, 40) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(seed), 7))
				strict := &strictServer{wire: test.wire, random: r, sent: map[string][]any{}}
				server := httptest.NewServer(strict)
				t.Cleanup(server.Close)
				e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", strings.Repeat("line\n", 2000))},
					model: func(m *Model) { test.change(m); m.BaseURL = server.URL }})
				for n := range 6 {
					if n%3 == 1 {
						e.cancelAfter(func(u update) bool { return u.Status == sdk.ToolCallStatusCompleted })
					}
					e.prompt("Look.")
					e.watch(nil)
					if n%2 == 1 {
						e.restart()
					}
				}
				require.Empty(t, strict.wrong)
				require.NotEmpty(t, strict.sent)
			})
		}
	}
}
