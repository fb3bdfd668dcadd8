package modelserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

// object is a JSON object of a wire format.
type object = map[string]any

// readChat decodes an OpenAI chat completion request.
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

// number returns a number that is unique within the conversation.
func (r Request) number() string { return fmt.Sprint(len(r.Items)) }

// readMessages decodes an Anthropic messages request.
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
		if t.Schema != nil { // tools that run on the server have none
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

// typed sends an event that repeats its name as its type.
func (e events) typed(name string, o object) { e.named(name, with(o, object{"type": name})) }

// readResponses decodes an OpenAI responses request.
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

// responsesTool is a tool or a namespace of tools.
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

// numbered sends events with their name as type and a sequence number.
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

// readGemini decodes a Gemini request.
func readGemini(body []byte, r *Request) error {
	type part struct {
		Text             string
		FunctionCall     *struct{ Args json.RawMessage }
		FunctionResponse *struct {
			Response struct{ Output, Error string }
		}
	}
	var asked struct {
		SystemInstruction struct{ Parts []part }
		Contents          []struct {
			Role  string
			Parts []part
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name                             string
				Parameters, ParametersJSONSchema json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	for _, p := range asked.SystemInstruction.Parts {
		r.instruct(p.Text)
	}
	for _, c := range asked.Contents {
		said := User
		if c.Role == "model" {
			said = Said
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionResponse != nil:
				r.Items = append(r.Items, Item{Kind: Result, Text: p.FunctionResponse.Response.Output + p.FunctionResponse.Response.Error})
			case p.FunctionCall != nil:
				r.add(Call, string(p.FunctionCall.Args))
			default:
				r.add(said, p.Text)
			}
		}
	}
	for _, t := range asked.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.ParametersJSONSchema
			if schema == nil {
				schema = f.Parameters
			}
			r.Tools = append(r.Tools, Tool{Name: f.Name, Schema: schema})
		}
	}
	return nil
}

func geminiAnswer(a act) object {
	part := object{"text": a.say}
	if a.tool.Name != "" {
		part = object{"functionCall": object{"name": a.tool.Name, "args": a.args}}
	}
	return object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		"modelVersion":  Model,
	}
}

func streamGemini(w http.ResponseWriter, _ Request, a act) { stream(w).data(geminiAnswer(a)) }

func writeGemini(w http.ResponseWriter, _ Request, a act) { send(w, geminiAnswer(a)) }
