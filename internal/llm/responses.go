package llm

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// responsesRequest is a request of OpenAI's responses. The server is told to store nothing, so each
// request contains everything, with the model's thoughts in encrypted form.
type responsesRequest struct {
	Input        []object `json:"input"`
	Model        string   `json:"model"`
	Instructions string   `json:"instructions,omitempty"`
	Tools        []object `json:"tools,omitempty"`
	Stream       bool     `json:"stream"`
	Store        bool     `json:"store"`
	Include      []string `json:"include,omitempty"`
	Reasoning    object   `json:"reasoning,omitempty"`
	MaxTokens    int      `json:"max_output_tokens,omitempty"`
	Temperature  *float64 `json:"temperature,omitempty"`
}

func encodeResponses(m Model, r Request, v variant) []byte {
	body := responsesRequest{Model: m.Name, Instructions: r.System, Stream: true,
		Input: []object{}, Reasoning: object{}}
	if v.takesLimit() {
		body.MaxTokens = v.limit(m, r)
	}
	if !v.has(noEncrypted) {
		body.Include = []string{"reasoning.encrypted_content"}
		if !v.has(noSummary) {
			body.Reasoning["summary"] = "auto"
		}
	}
	if r.Effort != "" {
		body.Reasoning["effort"] = r.Effort
	}
	if !v.has(noTemperature) {
		body.Temperature = r.Temperature
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, object{"type": "function", "name": t.Name,
			"description": t.Description, "parameters": t.Schema, "strict": false})
	}
	for _, m := range r.Messages {
		body.Input = append(body.Input, responsesItems(m, v)...)
	}
	return strictjson.Encode(body)
}

// responsesItems returns the items for a message. A thought must be followed by what the model then
// said or did.
func responsesItems(message Message, v variant) []object {
	var items, thoughts []object
	add := func(item object) {
		items, thoughts = append(append(items, thoughts...), item), nil
	}
	for _, part := range message.Parts {
		last := len(items) - 1
		switch p := part.(type) {
		case Text, Media:
			shown := responsesPart(p)
			if message.Role == Assistant && shown["text"] != nil {
				shown["type"] = "output_text"
			}
			if message.Role == User && last >= 0 && items[last]["type"] == "message" {
				items[last]["content"] = append(items[last]["content"].([]object), shown)
				break
			}
			add(object{"type": "message", "role": message.Role, "content": []object{shown}})
		case Thinking:
			thought := object{}
			thought.attach(p.Attached, v)
			switch {
			case p.Attached == nil: // it cannot be sent back
			case thought["type"] == nil: // it belongs to the text before it
				if last >= 0 && items[last]["role"] == Assistant {
					items[last].attach(p.Attached, v)
				}
			case isWholeThought(p.Attached):
				thoughts = append(thoughts, thought)
			}
		case ToolCall:
			call := object{"type": "function_call", "call_id": p.ID, "name": p.Name,
				"arguments": string(p.input())}
			call.attach(p.Attached, v)
			add(call)
		case ToolResult:
			add(object{"type": "function_call_output", "call_id": p.ID,
				"output": textOrList(p.Content, responsesPart)})
		}
	}
	return items
}

// isWholeThought reports whether a thought can be sent back. It must be complete, because the
// server stores nothing.
func isWholeThought(attached json.RawMessage) bool {
	var thought struct {
		Encrypted string `json:"encrypted_content"`
		Content   [1]json.RawMessage
	}
	_ = json.Unmarshal(attached, &thought)
	return thought.Encrypted != "" || thought.Content[0] != nil
}

// responsesPart returns a text, image or document that is given to the model.
func responsesPart(p Part) object {
	media, ok := p.(Media)
	switch {
	case !ok:
		return object{"type": "input_text", "text": p}
	case media.MediaType == PDF:
		return object{"type": "input_file", "filename": documentName, "file_data": media.url()}
	}
	return object{"type": "input_image", "image_url": media.url()}
}

type responsesDecoder struct {
	*answer
	streamed map[int]bool // items of which text or thoughts have arrived
}

// responsesItem is a part of an answer.
type responsesItem struct {
	Type, Name, Status string
	Arguments          written
	CallID             string `json:"call_id"`
	Content, Summary   responsesTexts

	attached json.RawMessage // what is sent back with it
}

// UnmarshalJSON implements [json.Unmarshaler]. It keeps what is sent back.
func (i *responsesItem) UnmarshalJSON(raw []byte) error {
	type item responsesItem
	_ = json.Unmarshal(raw, (*item)(i))
	switch i.Type {
	case "reasoning":
		i.attached = unknownMembers(raw, "status")
	case "function_call":
		i.attached = unknownMembers(raw, "id", "type", "status", "call_id", "name", "arguments")
	case "message":
		if phase := strictjson.Find(raw, "phase"); hasValue(phase) { // whether it is the answer
			i.attached = strictjson.Encode(object{"phase": phase})
		}
	}
	return nil
}

// thought returns the model's thought: the summary, or the whole thought from servers that do not
// summarize.
func (i responsesItem) thought() string {
	return cmp.Or(i.Summary.join(), i.Content.join())
}

// responsesTexts are the texts of an item.
type responsesTexts [maxParts]*struct{ Type, Text, Refusal string }

func (t responsesTexts) join() string {
	var all []string
	for _, part := range t {
		if part != nil {
			all = append(all, part.Text)
		}
	}
	return strings.Join(all, "\n\n")
}

func (d *responsesDecoder) decode(e sse.Event) *failure {
	var event struct {
		Type, Delta string

		Arguments written
		Index     int `json:"output_index"`
		Item      responsesItem
		Response  struct {
			Status     string
			Usage      tokens
			Incomplete struct{ Reason string } `json:"incomplete_details"`
		}
	}
	if failed := decodeEvent(e, &event); failed != nil {
		return failed
	}
	d.began = true
	switch kind := cmp.Or(event.Type, e.Name); kind {
	case "response.output_item.added":
		delete(d.streamed, event.Index) // not every server numbers items
		if event.Item.Type == "function_call" {
			d.beginCall(event.Index, event.Item)
		}
	case "response.output_text.delta", "response.refusal.delta":
		d.refused = d.refused || kind == "response.refusal.delta"
		d.streamed[event.Index] = true
		d.say(event.Delta)
	case "response.reasoning_summary_part.added":
		if d.streamed[event.Index] {
			d.think("\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.streamed[event.Index] = true
		d.think(event.Delta)
	case "response.function_call_arguments.delta":
		if call := d.open(event.Index, ""); call != nil {
			d.argue(call, event.Delta)
		} else {
			d.wrote(len(event.Delta))
		}
	case "response.function_call_arguments.done":
		d.replace(d.open(event.Index, ""), event.Arguments)
	case "response.output_item.done":
		d.endItem(event.Index, event.Item)
	case "response.completed", "response.incomplete":
		d.done, d.reason = true, event.Response.Incomplete.Reason
		if event.Response.Status == "incomplete" { // the usual reason, which aimock leaves out
			d.reason = cmp.Or(d.reason, "max_output_tokens")
		}
		d.count(event.Response.Usage)
	}
	return nil
}

// flush implements [decoder]. It leaves out calls that were cut off.
func (d *responsesDecoder) flush() {
	for _, call := range d.calls {
		if !call.ended && json.Valid(call.arguments) {
			d.finish(call)
		}
	}
}

// beginCall begins the call of an item.
func (d *responsesDecoder) beginCall(index int, item responsesItem) *pendingCall {
	call := d.begin(index, item.CallID, item.Name)
	d.argue(call, "")
	call.attached = []json.RawMessage{item.attached}
	return call
}

// replace sets the arguments of a call, if there are any.
func (d *responsesDecoder) replace(call *pendingCall, arguments written) {
	if call != nil && arguments != "" {
		d.bytes += len(arguments)
		call.arguments = []byte(arguments)
	}
}

// endItem ends an item, and adds the parts that were not streamed.
func (d *responsesDecoder) endItem(index int, item responsesItem) {
	streamed := d.streamed[index]
	delete(d.streamed, index)
	switch item.Type {
	case "message":
		said := streamed
		for _, c := range item.Content {
			if c != nil && !streamed {
				said, d.refused = true, d.refused || c.Refusal != ""
				d.say(c.Text + c.Refusal)
			}
		}
		if said && item.attached != nil {
			d.keep(Thinking{Attached: item.attached})
		}
	case "reasoning":
		text := item.thought()
		if !streamed {
			d.think(text)
		}
		d.keep(Thinking{Text: text, Attached: item.attached})
	case "function_call":
		d.endCall(index, item)
	}
}

// endCall ends a call with the arguments that have arrived.
func (d *responsesDecoder) endCall(index int, item responsesItem) {
	call := d.open(index, item.CallID)
	if call == nil { // not every server says that it begins
		call = d.beginCall(index, item)
	}
	d.replace(call, item.Arguments)
	if item.Status == "incomplete" && !json.Valid(call.arguments) {
		return
	}
	call.id, call.name, call.attached = item.CallID, item.Name, []json.RawMessage{item.attached}
	d.bytes += len(item.attached)
	d.finish(call)
}
