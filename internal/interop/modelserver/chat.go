package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// object saves the wire formats, which are deep, from a type for every level.
type object = map[string]any

// readChat reads a request for an OpenAI chat completion.
func readChat(body []byte, r *Request) error {
	var asked struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role      string
			Content   content
			ToolCalls []struct {
				Function struct{ Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	r.model, r.stream = asked.Model, asked.Stream
	for _, m := range asked.Messages {
		switch m.Role {
		case "system", "developer":
			r.instruct(m.Content.text())
		case "user":
			r.add(User, m.Content.text())
		case "tool":
			r.Items = append(r.Items, Item{Kind: Result, Text: m.Content.text()})
		case "assistant":
			r.add(Said, m.Content.text())
			for _, c := range m.ToolCalls {
				r.add(Call, c.Function.Arguments)
			}
		default:
			return fmt.Errorf("messages: role %q", m.Role)
		}
	}
	for _, t := range asked.Tools {
		r.Tools = append(r.Tools, Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	return nil
}

var chatUsage = object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

func writeChat(w http.ResponseWriter, r Request, a act) {
	message, finish := object{"role": "assistant", "content": a.say}, "stop"
	if a.tool.Name != "" {
		message, finish = object{"role": "assistant", "tool_calls": []any{object{
			"index": 0, "id": "call_" + r.number(), "type": "function",
			"function": object{"name": a.tool.Name, "arguments": string(a.args)},
		}}}, "tool_calls"
	}
	answer := func(kind string, choices ...any) object {
		return object{"id": "chatcmpl-" + r.number(), "object": kind, "created": 1, "model": r.model, "choices": choices}
	}
	if !r.stream {
		whole := answer("chat.completion", object{"index": 0, "message": message, "finish_reason": finish})
		whole["usage"] = chatUsage
		send(w, whole)
		return
	}
	const kind = "chat.completion.chunk"
	e := stream(w)
	e.data(answer(kind, object{"index": 0, "delta": message, "finish_reason": nil}))
	last := answer(kind, object{"index": 0, "delta": object{}, "finish_reason": finish})
	last["usage"] = chatUsage
	e.data(last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// number tells a conversation's tool calls apart.
func (r Request) number() string { return fmt.Sprint(len(r.Items)) }
