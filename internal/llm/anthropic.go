package llm

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// completeAnthropic returns a model with the defaults of Anthropic's messages.
func completeAnthropic(m Model) Model {
	m.BaseURL = cmp.Or(strings.TrimSuffix(m.BaseURL, "/v1"), "https://api.anthropic.com")
	if m.PDF == nil {
		m.PDF = new(claudeVersion(m.Name) >= 305)
	}
	if m.MaxTokens == 0 { // a limit must be sent: one that the model accepts
		m.MaxTokens = 8_192
		if claudeVersion(m.Name) >= 400 {
			m.MaxTokens = 32_000
		}
	}
	return m
}

func encodeAnthropic(m Model, r Request, v variant) []byte {
	messages := merged(withoutEmpty(r.Messages))
	body := object{"model": m.Name, "stream": true}
	if v.takesLimit() {
		body["max_tokens"] = v.limit(m, r)
	}
	switch {
	case r.System == "":
	case v.has(noMarks):
		body["system"] = r.System
	default:
		body["system"] = []object{{"type": "text", "text": r.System, "cache_control": ephemeral}}
	}
	if len(r.Tools) > 0 {
		tools := make([]object, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = object{
				"name": t.Name, "description": t.Description, "input_schema": t.Schema,
			}
		}
		body["tools"] = tools
	}
	version := claudeVersion(m.Name)
	thinks := setEffort(body, m, r, messages, v)
	if !thinks && 0 < version && version < 500 {
		// The model thinks only if it is told to. Otherwise its earlier thoughts must not be sent.
		messages = merged(withoutEmpty(without(r.Messages, isThinking)))
	}
	if r.Temperature != nil && version < 407 && !thinks && !v.has(noTemperature) {
		body["temperature"] = min(*r.Temperature, 1) // rejected otherwise
	}
	if len(r.Stop) > 0 {
		body["stop_sequences"] = r.Stop
	}
	ends, list := cacheEnds(messages), make([]object, len(messages))
	for i, m := range messages {
		content := anthropicContent(slices.SortedStableFunc(slices.Values(m.Parts),
			func(a, b Part) int { return place(a) - place(b) }), v)
		if slices.Contains(ends, i) && !v.has(noMarks) {
			content[len(content)-1]["cache_control"] = ephemeral
		}
		list[i] = object{"role": m.Role, "content": content}
	}
	body["messages"] = list
	return strictjson.Encode(body)
}

// setEffort says in a request how much the model should think, in the way of its version. It
// reports whether the request asks for thoughts.
func setEffort(body object, m Model, r Request, messages []Message, v variant) (thinks bool) {
	version, effort := claudeVersion(m.Name), r.Effort
	budget := thinkingBudget(effort, v.limit(m, r))
	byEffort := version >= 406 && !v.has(onlyBudget) || v.has(onlyEffort) // rejects a budget, or will
	switch {
	case effort == "none" && byEffort:
		body["thinking"] = object{"type": "disabled"}
	case effort == "", effort == "none", budget < minBudget:
	case byEffort:
		thinking := object{"type": "adaptive", "display": "summarized"}
		if v.has(noDisplay) {
			delete(thinking, "display")
		}
		if effort == "minimal" {
			effort = "low" // there is nothing below
		}
		body["thinking"], body["output_config"] = thinking, object{"effort": effort}
		return true
	case (version == 0 || version >= 307) && mayThink(messages):
		body["thinking"] = object{"type": "enabled", "budget_tokens": budget}
		return true
	}
	return false
}

// ephemeral marks the end of a part of the request that the server should cache.
var ephemeral = object{"type": "ephemeral"}

// claude matches the names of Anthropic's models.
var claude = text.Pattern(`(?i)claude\D*(?:(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$))?`)

// claudeVersion returns the version of one of Anthropic's models, such as 406 for "claude-opus-4-6"
// and 400 for "claude-opus-4-20250514". It is 0 for models of other companies, and high for names
// without a version, which only new models have.
func claudeVersion(name string) int {
	found := claude().FindStringSubmatch(name)
	switch {
	case found == nil:
		return 0
	case found[1] == "":
		return 9999
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return 100*major + minor
}

// minBudget is the minimum of tokens for thinking that is accepted.
const minBudget = 1024

// thinkingBudget returns the share of the answer's tokens that may be used for thinking.
func thinkingBudget(effort string, maxTokens int) int {
	switch effort {
	case "minimal":
		return min(minBudget, maxTokens/4)
	case "low":
		return maxTokens / 4
	case "medium":
		return maxTokens / 2
	case "xhigh", "max":
		return maxTokens / 8 * 7
	}
	return maxTokens / 4 * 3
}

// without returns messages without some of their parts.
func without(messages []Message, drop func(Part) bool) []Message {
	return ChangeParts(messages, func(p Part) Part {
		if drop(p) {
			return nil
		}
		return p
	})
}

// withoutEmpty returns messages without texts that are white space, and without thoughts at the end
// of a message. Both would be rejected.
func withoutEmpty(messages []Message) []Message {
	messages = without(messages, isBlank)
	for i, m := range messages {
		for m.Role == Assistant && len(m.Parts) > 0 && isThinking(m.Parts[len(m.Parts)-1]) {
			m.Parts = m.Parts[:len(m.Parts)-1]
		}
		messages[i] = m
	}
	return messages
}

func isThinking(p Part) bool {
	_, thought := p.(Thinking)
	return thought
}

func isBlank(p Part) bool {
	text, ok := p.(Text)
	return ok && strings.TrimSpace(string(text)) == ""
}

// place returns the place of a part in a user's message, in which results of tools must come first.
func place(p Part) int {
	if _, result := p.(ToolResult); result {
		return 0
	}
	return 1
}

// anthropicContent returns the parts of a message or of a tool's result. Texts that are empty or
// white space would be rejected.
func anthropicContent(parts []Part, v variant) (content []object) {
	for _, p := range parts {
		if !isBlank(p) {
			content = append(content, anthropicPart(p, v))
		}
	}
	return content
}

func anthropicPart(p Part, v variant) object {
	switch p := p.(type) {
	case Media:
		kind := "image"
		if p.MediaType == PDF {
			kind = "document"
		}
		source := object{"type": "base64", "media_type": p.MediaType, "data": p.Data}
		return object{"type": kind, "source": source}
	case Thinking:
		if p.Redacted != "" {
			return object{"type": "redacted_thinking", "data": p.Redacted}
		}
		return object{"type": "thinking", "thinking": p.Text, "signature": p.Signature}
	case ToolCall:
		use := object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": p.input()}
		use.attach(p.Attached, v)
		return use
	case ToolResult:
		result := object{"type": "tool_result", "tool_use_id": p.ID}
		if content := anthropicContent(p.Content, v); content != nil {
			result["content"] = content
		}
		if p.Failed {
			result["is_error"] = true
		}
		return result
	}
	return object{"type": "text", "text": p}
}

// mayThink reports whether the server accepts a request to think within a budget. If the messages
// end with the results of tools, it does so only if the model has thought before it called the
// tools. That is not so if the user has changed the model or its effort since then.
func mayThink(messages []Message) bool {
	thinks := true
	for _, m := range slices.Backward(messages) {
		if m.Role == Assistant {
			thinks = isThinking(m.Parts[0])
		} else if !slices.ContainsFunc(m.Parts, func(p Part) bool { return place(p) == 0 }) {
			break
		}
	}
	return thinks
}

type anthropicDecoder struct {
	*answer
	blocks map[int]*anthropicBlock // those that have started and not stopped
}

// anthropicBlock is a part of an answer: its start, and everything that was added later.
type anthropicBlock struct {
	Type, Text, Thinking, Signature, Data, ID, Name string

	Input    json.RawMessage
	attached json.RawMessage // see ToolCall.Attached
}

// UnmarshalJSON implements [json.Unmarshaler]. It keeps unknown members.
func (b *anthropicBlock) UnmarshalJSON(raw []byte) error {
	type block anthropicBlock
	_ = json.Unmarshal(raw, (*block)(b)) // what has another type is not used
	if b.Type == "tool_use" {
		b.attached = unknownMembers(raw, "type", "id", "name", "input")
	}
	return nil
}

type anthropicDelta struct {
	Text, Thinking, Signature string

	Input   string                       `json:"partial_json"`
	Reason  string                       `json:"stop_reason"`
	Details struct{ Explanation string } `json:"stop_details"`
}

func (d *anthropicDecoder) decode(e sse.Event) *failure {
	var event struct {
		Type    string
		Message struct{ Usage tokens }
		Index   int
		Block   anthropicBlock `json:"content_block"`
		Delta   anthropicDelta
		Usage   tokens
	}
	if failed := decodeEvent(e, &event); failed != nil {
		return failed
	}
	d.began = true
	d.count(event.Message.Usage)
	d.count(event.Usage)
	switch cmp.Or(event.Type, e.Name) {
	case "content_block_start":
		d.start(event.Index, &event.Block)
	case "content_block_delta":
		d.extend(event.Index, event.Delta)
	case "content_block_stop":
		d.stop(event.Index)
	case "message_delta":
		d.reason = cmp.Or(event.Delta.Reason, d.reason)
		why := event.Delta.Details.Explanation
		if why != "" && d.spoke {
			why = "\n\n" + why
		}
		if event.Delta.Reason == "refusal" {
			d.say(why)
		}
	case "message_stop":
		d.done = true
	}
	return nil
}

// start adds a block that has started.
func (d *anthropicDecoder) start(index int, b *anthropicBlock) {
	const overhead = 100 // so that empty blocks count
	d.bytes += overhead + len(b.Input) + len(b.attached)
	d.wrote(len(b.Signature) + len(b.Data))
	d.blocks[index] = b
	d.think(b.Thinking)
	d.say(b.Text)
	if b.Type == "tool_use" {
		call := d.begin(index, b.ID, b.Name)
		call.attached = []json.RawMessage{b.attached}
		d.argue(call, "")
	}
}

// extend adds a piece to a block.
func (d *anthropicDecoder) extend(index int, delta anthropicDelta) {
	b := d.blocks[index]
	if b == nil {
		return
	}
	d.say(delta.Text)
	d.think(delta.Thinking)
	d.wrote(len(delta.Signature))
	b.Signature += delta.Signature
	if call := d.open(index, ""); call != nil && delta.Input != "" {
		d.argue(call, delta.Input)
	}
}

// stop ends a block.
func (d *anthropicDecoder) stop(index int) {
	b := d.blocks[index]
	if b == nil {
		return
	}
	delete(d.blocks, index)
	switch b.Type {
	case "thinking":
		d.keep(Thinking{Text: d.thoughts(), Signature: b.Signature})
	case "redacted_thinking":
		d.keep(Thinking{Redacted: b.Data})
	case "tool_use":
		call := d.open(index, "")
		if whole := string(b.Input); len(call.arguments) == 0 && whole != "{}" && whole != "null" {
			call.arguments = b.Input
		}
		d.finish(call)
	}
}

// flush implements [decoder]. Some gateways leave out the end of the last block.
func (d *anthropicDecoder) flush() {
	for _, index := range slices.Sorted(maps.Keys(d.blocks)) {
		d.stop(index)
	}
}
