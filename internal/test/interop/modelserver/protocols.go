package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// object is a JSON object of a wire format.
type object = map[string]any

// readChat decodes an OpenAI chat completion request.
func readChat(body []byte, r *Request) error {
	var asked struct {
		Model         string
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string
			Content    content
			Reasoning  string     `json:"reasoning_content"`
			ToolCalls  []chatCall `json:"tool_calls"`
			ToolCallID string     `json:"tool_call_id"`
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
	r.model, r.stream, r.usageAsked = asked.Model, asked.Stream, asked.StreamOptions.IncludeUsage
	for _, t := range asked.Tools {
		r.Tools = append(r.Tools, Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	var order []chatMessage
	for _, m := range asked.Messages {
		order = append(order, chatMessage{m.Role, m.Content.text(), m.ToolCalls})
	}
	if err := r.checkOrder(order); err != nil {
		return err
	}
	var open calls
	for _, m := range asked.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return open.unanswered()
		}
		switch m.Role {
		case "system", "developer":
			r.instruct(m.Content.text())
		case "user":
			r.add(User, m.Content.text())
		case "tool":
			if err := open.answer(m.ToolCallID); err != nil {
				return err
			}
			r.Items = append(r.Items, Item{Kind: Result, Text: m.Content.text()})
		case "assistant":
			r.add(Thought, m.Reasoning)
			r.add(Said, m.Content.text())
			if err := r.checkCalls(m.ToolCalls, m.Reasoning); err != nil {
				return err
			}
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
				r.Items = append(r.Items, Item{Kind: Call, Text: c.Function.Arguments})
			}
		default:
			return fmt.Errorf("messages: role %q", m.Role)
		}
	}
	return open.unanswered()
}

// calls are the ids of tool calls without a result.
type calls []string

// answer removes a call that has a result.
func (c *calls) answer(id string) error {
	at := slices.Index(*c, id)
	if at < 0 {
		return fmt.Errorf("the result of tool call %q does not follow the message with the call",
			id)
	}
	*c = slices.Delete(*c, at, at+1)
	return nil
}

// unanswered returns an error if calls have no results.
func (c calls) unanswered() error {
	if len(c) == 0 {
		return nil
	}
	return fmt.Errorf("no results follow the tool calls %q", []string(c))
}

func writeChat(w http.ResponseWriter, r Request, a act) {
	finish := map[string]string{"": "stop", "stop": "stop", "length": "length",
		"refusal": "content_filter", "tool_calls": "tool_calls"}[a.end]
	if len(a.calls) > 0 && a.end == "" {
		finish = "tool_calls"
	}
	answer := func(kind string, choices ...any) object {
		return object{"id": "chatcmpl-" + r.number(), "object": kind, "created": 1,
			"model": r.model, "choices": append([]any{}, choices...)}
	}
	input, output := r.usage(a)
	usage := object{"prompt_tokens": input, "completion_tokens": output,
		"total_tokens": input + output}
	if !r.stream {
		message := object{"role": "assistant", "content": a.say}
		if a.thought != "" {
			message["reasoning_content"] = a.thought
		}
		var all []any
		for i, c := range a.calls {
			all = append(all, r.chatCall(a, i, c.args))
		}
		if all != nil {
			message["tool_calls"] = all
		}
		whole := answer("chat.completion", object{"index": 0, "message": message,
			"finish_reason": finish})
		whole["usage"] = usage
		send(w, whole)
		return
	}
	const kind = "chat.completion.chunk"
	e := stream(w)
	delta := func(o object) {
		e.data(answer(kind, object{"index": 0, "delta": o, "finish_reason": nil}))
	}
	delta(object{"role": "assistant", "content": ""})
	if a.thought != "" {
		delta(object{"reasoning_content": a.thought})
	}
	if a.says() {
		a.deltas(func(piece string) { delta(object{"content": piece}) })
	}
	for i, c := range a.calls {
		delta(object{"tool_calls": []any{r.chatCall(a, i, "")}})
		delta(object{"tool_calls": []any{object{"index": i,
			"function": object{"arguments": c.args}}}})
	}
	last := answer(kind, object{"index": 0, "delta": object{}, "finish_reason": finish})
	if !r.usageAsked {
		last["usage"] = usage
	}
	e.data(last)
	if r.usageAsked {
		last = answer(kind)
		last["usage"] = usage
		e.data(last)
	}
	e.text("", "[DONE]")
}

// chatCall returns a tool call of an answer as the request's model writes it.
func (r Request) chatCall(a act, i int, args string) object {
	call := object{"index": i, "id": fmt.Sprintf("call_%s_%d", r.number(), i),
		"type":     "function",
		"function": object{"name": a.calls[i].tool.Name, "arguments": args}}
	switch r.model {
	case Gemini3:
		if i == 0 {
			call["extra_content"] = geminiSignature(call["id"].(string))
		}
	case Mistral:
		call["id"] = fmt.Sprintf("m%04d%04d", len(r.Items), i)
	case KimiK2:
		call["id"] = kimiID(a.calls[i].tool.Name, len(r.Of(Call))+i)
	}
	return call
}

// number returns a number that is unique within the conversation.
func (r Request) number() string { return fmt.Sprint(len(r.Items)) }

// readMessages decodes an Anthropic messages request.
func readMessages(body []byte, r *Request) error {
	var asked struct {
		Model     string
		Stream    bool
		MaxTokens int `json:"max_tokens"`
		System    content
		Messages  []struct {
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
	if asked.MaxTokens <= 0 {
		return errors.New("max_tokens: field required")
	}
	var open calls
	for _, m := range asked.Messages {
		said := map[string]Kind{"user": User, "assistant": Said}[m.Role]
		thought := false
		for _, p := range m.Content {
			switch p.Type {
			case "tool_result":
				if err := open.answer(p.ToolUseID); err != nil {
					return err
				}
				r.Items = append(r.Items, Item{Kind: Result, Text: p.Content.text()})
				continue
			case "tool_use":
				if strings.HasPrefix(p.ID, "toolu_"+thoughtful) && !thought && r.model == Claude {
					return errors.New("`thinking` blocks of the latest assistant message cannot be removed")
				}
				open = append(open, p.ID)
				r.Items = append(r.Items, Item{Kind: Call, Text: string(p.Input)})
				continue
			case "thinking":
				if p.Signature != signature(p.Thinking) {
					return errors.New("thinking: invalid signature")
				}
				thought = true
				r.add(Thought, p.Thinking)
				continue
			case "text":
				if p.Text == "" {
					return errors.New("text content blocks must be non-empty")
				}
			}
			if said == User && len(open) > 0 {
				return open.unanswered()
			}
			if said == "" {
				r.instruct(p.Text)
			} else {
				r.add(said, p.Text)
			}
		}
	}
	for _, t := range asked.Tools {
		if t.Schema != nil { // tools that run on the server have none
			r.Tools = append(r.Tools, Tool{Name: t.Name, Schema: t.Schema})
		}
	}
	return open.unanswered()
}

// signature returns what Anthropic recognises a thought of its models by.
func signature(thought string) string { return fmt.Sprintf("signed %d", len(thought)) }

func writeMessages(w http.ResponseWriter, r Request, a act) {
	reason := map[string]string{"": "end_turn", "stop": "stop_sequence", "length": "max_tokens",
		"refusal": "refusal"}[a.end]
	if len(a.calls) > 0 && a.end == "" {
		reason = "tool_use"
	}
	input, output := r.usage(a)
	message := object{"id": "msg_" + r.number(), "type": "message", "role": "assistant",
		"model":   r.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": input, "output_tokens": 1}}
	prefix := "toolu_"
	if a.thought != "" {
		prefix += thoughtful
	}
	toolUse := func(i int, input any) object {
		return object{"type": "tool_use", "id": fmt.Sprintf("%s%s_%d", prefix, r.number(), i),
			"name": a.calls[i].tool.Name, "input": input}
	}
	if !r.stream {
		var blocks []any
		if a.thought != "" {
			blocks = append(blocks, object{"type": "thinking", "thinking": a.thought,
				"signature": signature(a.thought)})
		}
		if a.says() {
			blocks = append(blocks, object{"type": "text", "text": a.say})
		}
		for i, c := range a.calls {
			blocks = append(blocks, toolUse(i, json.RawMessage(c.args)))
		}
		send(w, with(message, object{"content": blocks, "stop_reason": reason,
			"usage": object{"input_tokens": input, "output_tokens": output}}))
		return
	}
	e := stream(w)
	e.typed("message_start", object{"message": message})
	index := 0
	block := func(begun object, deltas func(send func(object))) {
		e.typed("content_block_start", object{"index": index, "content_block": begun})
		deltas(func(delta object) {
			e.typed("content_block_delta", object{"index": index, "delta": delta})
		})
		e.typed("content_block_stop", object{"index": index})
		index++
	}
	if a.thought != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(send func(object)) {
			send(object{"type": "thinking_delta", "thinking": a.thought})
			send(object{"type": "signature_delta", "signature": signature(a.thought)})
		})
	}
	if a.says() {
		block(object{"type": "text", "text": ""}, func(send func(object)) {
			a.deltas(func(piece string) { send(object{"type": "text_delta", "text": piece}) })
		})
	}
	for i, c := range a.calls {
		block(toolUse(i, object{}), func(send func(object)) {
			send(object{"type": "input_json_delta", "partial_json": ""})
			send(object{"type": "input_json_delta", "partial_json": c.args})
		})
	}
	e.typed("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": output}})
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
		Store        *bool
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
				r.Tools = append(r.Tools, Tool{Name: of.Name, Namespace: t.Name,
					Schema: of.Parameters})
			}
		}
	}
	var text string
	if json.Unmarshal(asked.Input, &text) == nil {
		r.add(User, text)
		return nil
	}
	var items []responsesItem
	if err := json.Unmarshal(asked.Input, &items); err != nil {
		return err
	}
	if err := r.checkItems(items, asked.Store); err != nil {
		return err
	}
	for _, item := range items {
		for _, s := range item.Summary {
			r.add(Thought, s.Text)
		}
		switch item.Type + " " + item.Role {
		case "function_call ", "function_call assistant":
			r.Items = append(r.Items, Item{Kind: Call, Text: item.Arguments})
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

// responsesItem is a part of a conversation.
type responsesItem struct {
	Type, Role, Arguments string
	Content, Output       content
	Summary               content
	CallID                string `json:"call_id"`
	Encrypted             string `json:"encrypted_content"`
}

// responsesItems returns the items of an answer.
func responsesItems(r Request, a act) []object {
	var items []object
	if a.thought != "" {
		items = append(items, object{"id": "rs_" + r.number(), "type": "reasoning",
			"summary":           []any{object{"type": "summary_text", "text": a.thought}},
			"encrypted_content": signature(a.thought)})
	}
	if a.says() {
		items = append(items, object{"id": "msg_" + r.number(), "type": "message",
			"role": "assistant", "status": "completed", "content": []any{object{
				"type": "output_text", "text": a.say, "annotations": []any{}}}})
	}
	for i, called := range a.calls {
		id := fmt.Sprintf("%s_%d", r.number(), i)
		if a.thought != "" {
			id = thoughtful + id
		}
		item := object{"id": "fc_" + id, "type": "function_call", "status": "completed",
			"call_id": "call_" + id, "name": called.tool.Name, "arguments": called.args}
		if called.tool.Namespace != "" {
			item["namespace"] = called.tool.Namespace
		}
		items = append(items, item)
	}
	return items
}

func writeResponses(w http.ResponseWriter, r Request, a act) {
	items := responsesItems(r, a)
	input, output := r.usage(a)
	response := func(status string, output ...object) object {
		return object{"id": "resp_" + r.number(), "object": "response", "created_at": 1,
			"model": r.model, "status": status, "output": append([]object{}, output...)}
	}
	end, status := "response.completed", "completed"
	if a.end != "" {
		end, status = "response.incomplete", "incomplete"
	}
	whole := response(status, items...)
	if reason := map[string]string{"length": "max_output_tokens", "refusal": "content_filter"}[a.end]; reason != "" {
		whole["incomplete_details"] = object{"reason": reason}
	}
	whole["usage"] = object{"input_tokens": input, "output_tokens": output,
		"total_tokens":          input + output,
		"input_tokens_details":  object{"cached_tokens": 0},
		"output_tokens_details": object{"reasoning_tokens": 0}}
	if !r.stream {
		send(w, whole)
		return
	}
	e := numbered{events: stream(w)}
	e.send("response.created", object{"response": response("in_progress")})
	for i, item := range items {
		e.item(i, item, a)
	}
	e.send(end, object{"response": whole})
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

// item sends the events for an item of an answer.
func (n *numbered) item(i int, item object, a act) {
	begun := maps.Clone(item)
	begun["status"] = "in_progress"
	begin := func() { n.send("response.output_item.added", object{"output_index": i, "item": begun}) }
	at := object{"item_id": item["id"], "output_index": i}
	text := func(kind, part string, deltas func(send func(string))) {
		at := with(at, object{"content_index": 0, "summary_index": 0})
		deltas(func(piece string) { n.send(kind+".delta", with(at, object{"delta": piece})) })
		n.send(kind+".done", with(at, object{"text": part}))
	}
	switch item["type"] {
	case "reasoning":
		begun["summary"], begun["encrypted_content"] = []any{}, ""
		begin()
		n.send("response.reasoning_summary_part.added", with(at, object{"summary_index": 0,
			"part": object{"type": "summary_text", "text": ""}}))
		text("response.reasoning_summary_text", a.thought, func(send func(string)) { send(a.thought) })
	case "message":
		begun["content"] = []any{}
		begin()
		n.send("response.content_part.added", with(at, object{"content_index": 0,
			"part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		text("response.output_text", a.say, a.deltas)
		n.send("response.content_part.done", with(at, object{"content_index": 0,
			"part": object{"type": "output_text", "text": a.say, "annotations": []any{}}}))
	default:
		begun["arguments"] = ""
		begin()
		n.send("response.function_call_arguments.delta",
			with(at, object{"delta": item["arguments"]}))
		n.send("response.function_call_arguments.done",
			with(at, object{"arguments": item["arguments"]}))
	}
	n.send("response.output_item.done", object{"output_index": i, "item": item})
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
				r.Items = append(r.Items, Item{Kind: Result,
					Text: p.FunctionResponse.Response.Output + p.FunctionResponse.Response.Error})
			case p.FunctionCall != nil:
				r.Items = append(r.Items, Item{Kind: Call, Text: string(p.FunctionCall.Args)})
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
	a = a.one()
	part := object{"text": a.say}
	if len(a.calls) > 0 {
		part = object{"functionCall": object{"name": a.calls[0].tool.Name,
			"args": json.RawMessage(a.calls[0].args)}}
	}
	return object{
		"candidates": []any{object{"index": 0, "content": object{"role": "model",
			"parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1,
			"totalTokenCount": 2},
		"modelVersion": Model,
	}
}

func streamGemini(w http.ResponseWriter, _ Request, a act) { stream(w).data(geminiAnswer(a)) }

func writeGemini(w http.ResponseWriter, _ Request, a act) { send(w, geminiAnswer(a)) }
