package modelserver

import (
	"encoding/json"
	"maps"
	"net/http"
)

// readResponses reads a request for an OpenAI response.
func readResponses(body []byte, r *Request) error {
	var asked struct {
		Model        string
		Stream       bool
		Instructions string
		Input        json.RawMessage
		Tools        []responsesTool
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	r.model, r.stream, r.Instructions = asked.Model, asked.Stream, asked.Instructions
	for _, t := range asked.Tools {
		switch t.Type {
		case "function":
			r.Tools = append(r.Tools, Tool{Name: t.Name, Schema: t.Parameters})
		case "namespace":
			for _, of := range t.Tools {
				r.Tools = append(r.Tools, Tool{Name: of.Name, Namespace: t.Name, Schema: of.Parameters})
			}
		}
	}
	var text string
	if json.Unmarshal(asked.Input, &text) == nil {
		r.add(User, text)
		return nil
	}
	var items []struct {
		Type, Role, Arguments string
		Content, Output       content
	}
	if err := json.Unmarshal(asked.Input, &items); err != nil {
		return err
	}
	for _, item := range items {
		switch item.Type + " " + item.Role {
		case "function_call ":
			r.add(Call, item.Arguments)
		case "function_call_output ":
			r.Items = append(r.Items, Item{Kind: Result, Text: item.Output.text()})
		case "message system", "message developer", " system", " developer":
			r.instruct(item.Content.text())
		case "message assistant", " assistant":
			r.add(Said, item.Content.text())
		case "message user", " user":
			r.add(User, item.Content.text())
		}
	}
	return nil
}

// responsesTool is a tool, or a namespace of tools.
type responsesTool struct {
	Type, Name string
	Parameters json.RawMessage
	Tools      []responsesTool
}

func writeResponses(w http.ResponseWriter, r Request, a act) {
	item, empty := object{"id": "msg_" + r.number(), "type": "message", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": a.say, "annotations": []any{}}}}, "content"
	if a.tool.Name != "" {
		item, empty = object{"id": "fc_" + r.number(), "type": "function_call", "status": "completed",
			"call_id": "call_" + r.number(), "name": a.tool.Name, "arguments": string(a.args)}, "arguments"
		if a.tool.Namespace != "" {
			item["namespace"] = a.tool.Namespace
		}
	}
	response := func(status string, output ...any) object {
		return object{"id": "resp_" + r.number(), "object": "response", "created_at": 1, "model": r.model, "status": status,
			"output": append([]any{}, output...), "usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
				"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0}}}
	}
	whole := response("completed", item)
	if !r.stream {
		send(w, whole)
		return
	}
	begun := maps.Clone(item)
	begun["status"] = "in_progress"
	begun[empty] = map[string]any{"content": []any{}, "arguments": ""}[empty]
	e := numbered{events: stream(w)}
	e.send("response.created", object{"response": response("in_progress")})
	e.send("response.output_item.added", object{"output_index": 0, "item": begun})
	if a.tool.Name == "" {
		at := object{"item_id": item["id"], "output_index": 0, "content_index": 0}
		e.send("response.content_part.added", with(at, object{"part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		e.send("response.output_text.delta", with(at, object{"delta": a.say}))
		e.send("response.output_text.done", with(at, object{"text": a.say}))
		e.send("response.content_part.done", with(at, object{"part": object{"type": "output_text", "text": a.say, "annotations": []any{}}}))
	} else {
		at := object{"item_id": item["id"], "output_index": 0}
		e.send("response.function_call_arguments.delta", with(at, object{"delta": string(a.args)}))
		e.send("response.function_call_arguments.done", with(at, object{"arguments": string(a.args)}))
	}
	e.send("response.output_item.done", object{"output_index": 0, "item": item})
	e.send("response.completed", object{"response": whole})
}

// numbered are events that say their own name, and count.
type numbered struct {
	events
	count int
}

func (n *numbered) send(name string, o object) {
	n.named(name, with(o, object{"type": name, "sequence_number": n.count}))
	n.count++
}

func with(o, more object) object {
	both := maps.Clone(o)
	maps.Copy(both, more)
	return both
}
