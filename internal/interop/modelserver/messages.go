package modelserver

import (
	"encoding/json"
	"net/http"
)

// readMessages reads a request for an Anthropic message.
func readMessages(body []byte, r *Request) error {
	var asked struct {
		Model    string
		Stream   bool
		System   content
		Messages []struct {
			Role    string
			Content content
		}
		Tools []struct {
			Name   string
			Schema json.RawMessage `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	r.model, r.stream, r.Instructions = asked.Model, asked.Stream, asked.System.text()
	for _, m := range asked.Messages {
		said := map[string]Kind{"user": User, "assistant": Said}[m.Role]
		for _, p := range m.Content {
			switch {
			case p.Type == "tool_result":
				r.Items = append(r.Items, Item{Kind: Result, Text: p.Content.text()})
			case p.Type == "tool_use":
				r.add(Call, string(p.Input))
			case said == "":
				r.instruct(p.Text)
			default:
				r.add(said, p.Text)
			}
		}
	}
	for _, t := range asked.Tools {
		if t.Schema != nil { // one that the endpoint itself would run has none
			r.Tools = append(r.Tools, Tool{Name: t.Name, Schema: t.Schema})
		}
	}
	return nil
}

func writeMessages(w http.ResponseWriter, r Request, a act) {
	block, begun, reason := object{"type": "text", "text": a.say}, object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": a.say}
	if a.tool.Name != "" {
		id := "toolu_" + r.number()
		block = object{"type": "tool_use", "id": id, "name": a.tool.Name, "input": a.args}
		begun = object{"type": "tool_use", "id": id, "name": a.tool.Name, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(a.args)}
		reason = "tool_use"
	}
	message := object{"id": "msg_" + r.number(), "type": "message", "role": "assistant", "model": r.model,
		"content": []any{block}, "stop_reason": reason, "stop_sequence": nil,
		"usage": object{"input_tokens": 1, "output_tokens": 1}}
	if !r.stream {
		send(w, message)
		return
	}
	e := stream(w)
	e.typed("message_start", object{"message": with(message, object{"content": []any{}, "stop_reason": nil})})
	e.typed("content_block_start", object{"index": 0, "content_block": begun})
	e.typed("content_block_delta", object{"index": 0, "delta": delta})
	e.typed("content_block_stop", object{"index": 0})
	e.typed("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 1}})
	e.typed("message_stop", object{})
}

// typed sends an event that says its own name.
func (e events) typed(name string, o object) { e.named(name, with(o, object{"type": name})) }
