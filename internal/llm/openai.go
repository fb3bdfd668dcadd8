package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// completeOpenAI returns a model with the defaults of both formats of OpenAI.
func completeOpenAI(m Model) Model {
	const own = "https://api.openai.com/v1"
	m.BaseURL = cmp.Or(m.BaseURL, own)
	if m.PDF == nil {
		m.PDF = new(m.BaseURL == own && !m.TextOnly)
	}
	return m
}

// chatRequest is a request of OpenAI's chat completions. The servers that speak it differ in what
// they accept.
type chatRequest struct {
	Messages            []object `json:"messages"`
	Model               string   `json:"model"`
	Tools               []object `json:"tools,omitempty"`
	Stream              bool     `json:"stream"`
	StreamOptions       any      `json:"stream_options,omitempty"`
	MaxTokens           int      `json:"max_tokens,omitempty"`
	MaxCompletionTokens int      `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string   `json:"reasoning_effort,omitempty"`
	Temperature         *float64 `json:"temperature,omitempty"`
	Stop                []string `json:"stop,omitempty"`
}

func encodeChat(m Model, r Request, v variant) []byte {
	body := chatRequest{Messages: []object{}, Model: m.Name, Stream: true, ReasoningEffort: r.Effort,
		Stop: r.Stop}
	switch limit := v.limit(m, r); {
	case v.has(newMaxTokens):
		body.MaxCompletionTokens = limit
	case v.takesLimit():
		body.MaxTokens = limit
	}
	if !v.has(noUsage) {
		body.StreamOptions = map[string]bool{"include_usage": true}
	}
	if !v.has(noTemperature) {
		body.Temperature = r.Temperature
	}
	if v.has(noEffort) && r.Effort == "" && len(r.Tools) > 0 {
		body.ReasoningEffort = "none"
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, object{"type": "function", "function": object{
			"name": t.Name, "description": t.Description, "parameters": t.Schema,
		}})
	}
	// Gateways such as OpenRouter and LiteLLM pass the marks on to Anthropic's models, which cache
	// nothing without them.
	marks := claudeVersion(m.Name) > 0 && !v.has(noMarks)
	messages := merged(withoutSilent(r.Messages))
	switch {
	case r.System == "":
	case v.has(noSystem):
		system := []Message{UserText(r.System)}
		messages = merged(append(system, messages...))
	default:
		system := object{"role": "system", "content": r.System}
		if marks {
			markForCache(system)
		}
		body.Messages = []object{system}
	}
	ends := cacheEnds(messages)
	for i, m := range messages {
		encoded := chatMessages(m, v)
		if last := len(encoded) - 1; marks && slices.Contains(ends, i) && last >= 0 {
			markForCache(encoded[last])
		}
		body.Messages = append(body.Messages, encoded...)
	}
	return strictjson.Encode(body)
}

// withoutSilent returns messages without those of the model in which it has only thought. Chat
// completions have no message for them, so they must not separate two messages of the user.
func withoutSilent(messages []Message) []Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m Message) bool {
		return m.Role == Assistant && !slices.ContainsFunc(m.Parts, func(p Part) bool {
			return !isThinking(p)
		})
	})
}

// bridge is what the model is said to have answered to the results of its tools, for servers that
// need an answer between these and the next message of the user.
const bridge = "Understood."

// markForCache marks a message for the cache, unless it is empty.
func markForCache(message object) {
	content, ok := message["content"].([]object)
	if text, _ := message["content"].(string); text != "" {
		content, ok = []object{{"type": "text", "text": text}}, true
	}
	if ok {
		content[len(content)-1]["cache_control"] = ephemeral
		message["content"] = content
	}
}

// unsigned is a value that Gemini accepts instead of a signature for a call that it has not made.
var unsigned = object{
	"google": object{"thought_signature": "skip_thought_signature_validator"},
}

// chatMessages returns the encoded messages for a message: one for each result of a tool, and one
// for the rest. Only messages of the user can have media, so those of results are in the rest.
func chatMessages(m Message, v variant) []object {
	var results, calls []object
	var content []Part
	for _, part := range m.Parts {
		switch p := part.(type) {
		case Text, Media:
			content = append(content, p)
		case ToolResult:
			text, media := divided(p.Content)
			results = append(results,
				object{"role": "tool", "tool_call_id": p.ID, "content": text})
			if len(media) > 0 {
				from := Text("The images or documents in the result of the tool call " + p.ID + ":")
				content = append(append(content, from), media...)
			}
		case ToolCall:
			call := object{
				"id": p.ID, "type": "function",
				"function": object{"name": p.Name, "arguments": string(p.input())},
			}
			call.attach(p.Attached, v)
			if v.has(needsSignatures) && len(calls) == 0 && p.Attached == nil {
				call["extra_content"] = unsigned
			}
			calls = append(calls, call)
		}
	}
	rest := object{"role": m.Role, "content": nil}
	switch {
	case len(content) > 0:
		rest["content"] = textOrList(content, chatPart)
	case calls == nil:
		return results
	case v.has(needsText) && !v.has(noEmptyText):
		rest["content"] = ""
	}
	if v.has(bridges) && len(results) > 0 {
		results = append(results, object{"role": Assistant, "content": bridge})
	}
	if calls != nil {
		rest["tool_calls"] = calls
	}
	addThoughts(rest, m, content, v)
	return append(results, rest)
}

// addThoughts adds what the model thought to its message, which has this content: where it was in
// the answer, or where the server wants it.
func addThoughts(to object, m Message, content []Part, v variant) {
	thought, attached := "", []json.RawMessage(nil)
	for _, part := range m.Parts {
		if p, ok := part.(Thinking); ok {
			thought += p.Text
			attached = append(attached, p.Attached)
		}
	}
	joined := joinMembers(attached)
	var members struct{ Content any } // see [chatDecoder]
	_ = json.Unmarshal(joined, &members)
	switch thoughts := members.Content.(type) {
	case []any:
		for _, part := range content {
			thoughts = append(thoughts, object{"type": "text", "text": part})
		}
		to["content"] = thoughts
	case string:
		said, _ := to["content"].(string)
		to["content"] = thoughts + said
	}
	to.attach(joined, v)
	switch {
	case v.has(noThoughts):
		delete(to, "reasoning_content")
	case v.has(allThoughts) && m.Role == Assistant:
		to["reasoning_content"] = cmp.Or(thought, " ")
	case thought != "":
		to["reasoning_content"] = thought
	}
}

// chatPart returns a text, image or document in a message.
func chatPart(p Part) object {
	media, ok := p.(Media)
	switch {
	case !ok:
		return object{"type": "text", "text": p}
	case media.MediaType == PDF:
		file := object{"filename": documentName, "file_data": media.url()}
		return object{"type": "file", "file": file}
	}
	return object{"type": "image_url", "image_url": object{"url": media.url()}}
}

// textOrList returns texts as one string, which all servers accept, and a list if there are media.
func textOrList(parts []Part, encode func(Part) object) any {
	text, media := divided(parts)
	if media == nil {
		return text
	}
	var list []object
	for _, p := range parts {
		list = append(list, encode(p))
	}
	return list
}

// divided returns texts as one, and media.
func divided(parts []Part) (text string, media []Part) {
	for _, part := range parts {
		said, ok := part.(Text)
		switch {
		case !ok:
			media = append(media, part)
		case text == "" || said == "":
			text += string(said)
		default:
			text += "\n\n" + string(said)
		}
	}
	return text, media
}

// chatDecoder decodes the chunks of a chat completion.
type chatDecoder struct {
	*answer
	source  thoughtSource
	content tagged
	tags    bool // tagged thoughts must be sent back
	// attached are the members of the message that have no meaning here, piece by piece.
	attached []json.RawMessage

	processed int // tokens of the request
}

// thoughtSource is the place in a message where thoughts were, and to which they are sent back.
type thoughtSource string

const (
	inReasoningContent thoughtSource = "reasoning_content" // a member
	inReasoning        thoughtSource = "reasoning"         // a member, of Groq and Cerebras
	inTags             thoughtSource = "tags in the content"
	inList             thoughtSource = "a list in the content" // of Mistral
)

// chatChunk is an event. Its lists are arrays, so that further elements are skipped when they are
// decoded. In slices, elements of a few bytes would take a hundred times as much memory.
type chatChunk struct {
	Choices [8]*struct {
		Index        int
		Delta        chatDelta
		FinishReason string `json:"finish_reason"`
		Usage        tokens // Kimi has it here
	}
	Usage tokens
	Groq  struct{ Usage tokens } `json:"x_groq"` // before the usual place was known there
	// Progress is how much of the request llama.cpp has read.
	Progress struct{ Processed int } `json:"prompt_progress"`
}

type chatDelta struct {
	// Content is a string, but Mistral sends lists of parts for models that think.
	Content            json.RawMessage
	Reasoning, Refusal string
	ReasoningContent   string                        `json:"reasoning_content"`
	ToolCalls          *[maxCalls + 1]*chatCallDelta `json:"tool_calls"`
	FunctionCall       *chatFunction                 `json:"function_call"` // of old servers

	attached json.RawMessage // what else there is
}

// UnmarshalJSON implements [json.Unmarshaler]. It keeps unknown members.
func (d *chatDelta) UnmarshalJSON(raw []byte) error {
	type delta chatDelta
	_ = json.Unmarshal(raw, (*delta)(d)) // in one member; the others are decoded
	d.attached = unknownMembers(raw, "role", "index", "content", "refusal", "tool_calls",
		"function_call", "reasoning", "reasoning_content", "annotations", "audio", "images",
		"token_ids", "channel")
	return nil
}

type chatCallDelta struct {
	Index    *int
	ID       string
	Function chatFunction

	attached json.RawMessage // what else there is
}

type chatFunction struct {
	Name      string
	Arguments written
}

// written are the arguments of a call. They are a text, but some servers send the object.
type written string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *written) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*string)(w)) != nil {
		*w = written(raw)
	}
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It keeps unknown members.
func (d *chatCallDelta) UnmarshalJSON(raw []byte) error {
	type delta chatCallDelta
	_ = json.Unmarshal(raw, (*delta)(d))
	d.attached = unknownMembers(raw, "index", "id", "type", "function")
	return nil
}

func (d *chatDecoder) decode(e sse.Event) *failure {
	var chunk chatChunk
	if failed := decodeEvent(e, &chunk); failed != nil {
		return failed
	}
	d.count(chunk.Usage)
	d.count(chunk.Groq.Usage)
	if processed := chunk.Progress.Processed; processed > d.processed {
		d.processed = processed
		d.news++
	}
	for _, choice := range chunk.Choices {
		if choice == nil || choice.Index != 0 {
			continue
		}
		d.began = true
		d.delta(choice.Delta)
		d.reason = cmp.Or(choice.FinishReason, d.reason)
		d.count(choice.Usage)
	}
	return nil
}

// delta adds a piece of the answer.
func (d *chatDecoder) delta(delta chatDelta) {
	said, thought := chatTexts(delta.Content)
	source := inList
	if thought == "" {
		said, thought = d.content.split(said)
		source = inTags
	}
	switch { // some servers send both
	case delta.ReasoningContent != "":
		thought, d.source = delta.ReasoningContent, inReasoningContent
	case delta.Reasoning != "":
		thought, source = delta.Reasoning, inReasoning
	}
	if thought != "" {
		d.source = cmp.Or(d.source, source)
	}
	d.think(thought)
	d.say(said + delta.Refusal)
	d.refused = d.refused || delta.Refusal != ""
	if delta.attached != nil {
		d.wrote(len(delta.attached))
		d.attached = append(d.attached, delta.attached)
	}
	var calls []*chatCallDelta
	if delta.ToolCalls != nil {
		calls = slices.DeleteFunc(delta.ToolCalls[:], func(c *chatCallDelta) bool { return c == nil })
	} else if delta.FunctionCall != nil {
		calls = []*chatCallDelta{{Index: new(0), Function: *delta.FunctionCall}}
	}
	for i, call := range calls {
		d.add(*call, len(calls)-i)
	}
}

// tagged separates a model's thoughts from its answer if its text begins with thoughts in tags.
// Local servers leave the tags in the text unless they are configured for the model.
type tagged struct {
	at   tagPlace
	held string // can become a part of a tag
}

// tagPlace is how far a text is.
type tagPlace int

const (
	atBeginning tagPlace = iota // it may begin with the tag
	inThoughts
	afterThoughts // before the answer
	inAnswer
)

// split returns the next pieces of both.
func (t *tagged) split(piece string) (said, thought string) {
	const opening, closing = "<think>", "</think>"
	piece, t.held = t.held+piece, ""
	if t.at == atBeginning {
		rest := strings.TrimLeft(piece, " \t\r\n")
		after, tag := strings.CutPrefix(rest, opening)
		switch {
		case tag:
			t.at, piece = inThoughts, after
		case strings.HasPrefix(opening, rest):
			t.held = piece
			return "", ""
		default:
			t.at = inAnswer
		}
	}
	if t.at == inThoughts {
		before, after, closed := strings.Cut(piece, closing)
		if !closed {
			n := len(closing) - 1
			for !strings.HasSuffix(before, closing[:n]) {
				n--
			}
			t.held = before[len(before)-n:]
			return "", before[:len(before)-n]
		}
		t.at, piece, thought = afterThoughts, after, before
	}
	if t.at == afterThoughts {
		if piece = strings.TrimLeft(piece, " \t\r\n"); piece != "" {
			t.at = inAnswer
		}
	}
	return piece, thought
}

// chatTexts returns the text and the thoughts in the content of a message.
func chatTexts(content json.RawMessage) (said, thought string) {
	if json.Unmarshal(content, &said) == nil {
		return said, ""
	}
	var parts [maxParts]struct {
		Text     string
		Thinking *[maxParts]struct{ Text string }
	}
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		said += p.Text
		if p.Thinking == nil {
			continue
		}
		for _, t := range p.Thinking {
			thought += t.Text
		}
	}
	return said, thought
}

// add adds a piece of a tool call. A call has an index, and its first piece has an ID and a name,
// but servers differ: some give all calls the same index or none, or each piece a new ID, or leave
// out IDs. Without an index, the piece belongs to the call at the same distance from the end, or to
// a new one.
func (d *chatDecoder) add(piece chatCallDelta, fromEnd int) {
	var call *pendingCall
	if piece.Index != nil {
		call = d.open(*piece.Index, "")
	} else if at := len(d.calls) - fromEnd; at >= 0 {
		call = d.calls[at]
	}
	name, anonymous := piece.Function.Name, piece.ID == ""
	more := anonymous || piece.Function.Arguments != ""
	if call == nil || name != "" &&
		(!anonymous && piece.ID != call.id || more && json.Valid(call.arguments)) {
		index := len(d.calls)
		if piece.Index != nil {
			index = *piece.Index
		}
		call = d.begin(index, piece.ID, "")
	}
	if name != call.name && (call.name == "" || len(call.arguments) == 0) {
		call.name += name // some servers send it in pieces, others in each piece
	}
	call.id = cmp.Or(call.id, piece.ID)
	if piece.attached != nil {
		call.attached = append(call.attached, piece.attached)
		d.bytes += len(piece.attached)
	}
	d.argue(call, string(piece.Function.Arguments))
}

// flush implements [decoder].
func (d *chatDecoder) flush() {
	if d.content.at == inThoughts {
		d.think(d.content.held)
	} else {
		d.say(d.content.held)
	}
	d.keepThoughts()
	for i, c := range d.calls {
		again := i > 0 && c.id == "" && len(c.arguments) == 0 && c.index == d.calls[i-1].index &&
			c.name == d.calls[i-1].name
		if !again { // a last piece that only repeats the name
			d.finish(c)
		}
	}
}

// keepThoughts adds the thoughts as they must be sent back: as reasoning_content, or in another
// member beside those that have no meaning here.
func (d *chatDecoder) keepThoughts() {
	var kept Thinking
	var member object
	switch thoughts := d.thoughts(); d.source {
	case inReasoningContent:
		kept.Text = thoughts
	case inReasoning:
		member = object{"reasoning": thoughts}
		for _, piece := range d.attached {
			if bytes.Contains(piece, []byte(`"reasoning_details"`)) {
				member = nil // they are there too
			}
		}
	case inTags:
		if d.tags {
			member = object{"content": "<think>" + thoughts + "</think>\n\n"}
		}
	case inList:
		list := []object{{"type": "text", "text": thoughts}}
		member = object{"content": []object{{"type": "thinking", "thinking": list}}}
	}
	if member != nil {
		d.attached = append(d.attached, strictjson.Encode(member))
	}
	if kept.Attached = joinMembers(d.attached); kept.Text != "" || kept.Attached != nil {
		d.keep(kept)
	}
}
