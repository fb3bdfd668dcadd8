package llm

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// format is a wire format: how requests are written, and how answers are read. It has no state:
// what is known about a server is in its [variant].
type format struct {
	// answers and models are the paths for requesting answers and the list of models, below the
	// model's BaseURL.
	answers, models string
	// maxTools is how many tools a request may have, 0 if that is not known.
	maxTools int
	// keyHeader is the header for the key, which follows keyPrefix.
	keyHeader, keyPrefix string
	version              string // of the header Anthropic-Version, "" for none
	// marked is set if [DONE] says that an answer is complete.
	marked bool
	// complete returns m with the format's defaults for BaseURL and MaxTokens if they are not set.
	complete func(m Model) Model
	// encode returns the body of a request to a server that differs from the format as v says.
	encode func(m Model, r Request, v variant) []byte
	// decoder returns a decoder for the stream of one answer.
	decoder func(v variant, to *answer) decoder
}

// formats are all wire formats.
var formats = map[API]format{
	OpenAI: {
		answers: "/chat/completions", models: "/models", maxTools: 128, marked: true,
		keyHeader: "Authorization", keyPrefix: "Bearer ",
		complete: completeOpenAI, encode: encodeChat,
		decoder: func(v variant, to *answer) decoder {
			return &chatDecoder{answer: to, tags: v.has(tags)}
		},
	},
	Responses: {
		answers: "/responses", models: "/models", maxTools: 128,
		keyHeader: "Authorization", keyPrefix: "Bearer ",
		complete: completeOpenAI, encode: encodeResponses,
		decoder: func(_ variant, to *answer) decoder {
			return &responsesDecoder{answer: to, streamed: map[int]bool{}}
		},
	},
	Anthropic: {
		answers: "/v1/messages", models: "/v1/models?limit=1000",
		keyHeader: "X-Api-Key", version: "2023-06-01",
		complete: completeAnthropic, encode: encodeAnthropic,
		decoder: func(_ variant, to *answer) decoder {
			return &anthropicDecoder{to, map[int]*anthropicBlock{}}
		},
	},
}

// decoder decodes the stream of one answer, event by event.
type decoder interface {
	// decode adds what an event of the stream stands for. It fails if that is not of the format.
	decode(e sse.Event) *failure
	// flush adds what has begun and was not ended when the stream ends.
	flush()
}

// maxEvent limits a line of a stream, and the data of an event, in bytes.
const maxEvent = 8 << 20

// object is a JSON object of a request.
type object map[string]any

// hasValue reports whether a member is present, and not null.
func hasValue(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// input returns the arguments, or an empty object if they are not a JSON object. Servers reject a
// conversation with anything else, even if the model wrote it.
func (c ToolCall) input() json.RawMessage {
	raw := json.RawMessage(c.Arguments)
	if !strictjson.IsObject(raw) || !json.Valid(raw) {
		return json.RawMessage("{}")
	}
	return raw
}

// Readable returns messages with a note in place of each medium that the model does not accept.
func (m Model) Readable(messages []Message) []Message {
	return ReplaceMedia(messages, func(media Media) Text {
		switch {
		case m.Takes(media.MediaType):
			return ""
		case media.MediaType == PDF:
			return "[A PDF document was left out, because you cannot read them.]"
		}
		return "[An image was left out, because you cannot see images.]"
	})
}

// ReplaceMedia returns messages with notes in place of the media for which note returns one.
func ReplaceMedia(messages []Message, note func(Media) Text) []Message {
	var replace func(p Part) Part
	replace = func(p Part) Part {
		switch part := p.(type) {
		case Media:
			if text := note(part); text != "" {
				return text
			}
		case ToolResult:
			part.Content = changed(part.Content, replace)
			return part
		}
		return p
	}
	return ChangeParts(messages, replace)
}

// ChangeParts returns messages with what change returns for each of their parts, in their order. A
// part for which that is nil is left out.
func ChangeParts(messages []Message, change func(Part) Part) []Message {
	messages = slices.Clone(messages)
	for i, m := range messages {
		messages[i].Parts = changed(m.Parts, change)
	}
	return messages
}

func changed(parts []Part, change func(Part) Part) []Part {
	all := make([]Part, 0, len(parts))
	for _, p := range parts {
		if p = change(p); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// HasMedia reports whether a part is an image or document, or has one.
func HasMedia(p Part) bool {
	switch p := p.(type) {
	case Media:
		return true
	case ToolResult:
		return slices.ContainsFunc(p.Content, HasMedia)
	}
	return false
}

// documentName is the name of a PDF document that is sent to servers.
const documentName = "document.pdf"

// url returns the content as a data URL.
func (m Media) url() string {
	return "data:" + m.MediaType + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
}

// cacheEnds returns which messages end a part of the request that the server should cache: the last
// two messages of the user. The first of them ended the previous request, and servers do not search
// far back for it.
func cacheEnds(messages []Message) (ends []int) {
	for i, m := range slices.Backward(messages) {
		if m.Role == User && len(ends) < 2 {
			ends = append(ends, i)
		}
	}
	return ends
}

// merged returns messages in which successive messages of one role are joined, because many servers
// require that roles alternate.
func merged(messages []Message) []Message {
	var all []Message
	for _, m := range messages {
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Parts = append(slices.Clip(all[last].Parts), m.Parts...)
		} else if len(m.Parts) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// returned returns messages in the form in which the model gets them back: with its own IDs of tool
// calls, if they are unique, and without what belongs to other models.
func (m Model) returned(messages []Message) []Message {
	origin := m.Origin()
	ids, taken := map[string]string{}, map[string]bool{}
	return ChangeParts(messages, func(part Part) Part {
		switch p := part.(type) {
		case Thinking:
			if p.From != origin {
				return nil
			}
		case ToolCall:
			own := p.ID
			if p.From != origin {
				p.Attached = nil
			} else if p.Given != "" && !taken[p.Given] {
				p.ID = p.Given
			}
			ids[own], taken[p.ID] = p.ID, true
			return p
		case ToolResult:
			p.ID = cmp.Or(ids[p.ID], p.ID)
			return p
		}
		return part
	})
}

// unknownMembers returns an object with the members of a JSON object that are set and not among the
// known ones, or nil.
func unknownMembers(raw json.RawMessage, known ...string) json.RawMessage {
	o, err := strictjson.ParseObject(raw)
	if err != nil {
		return nil
	}
	unknown := object{}
	for name, value := range o.All() {
		if !slices.Contains(known, name) && hasValue(value) {
			unknown[name] = value
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return strictjson.Encode(unknown)
}

// attach adds the members of a JSON object that o does not have, except those that the server does
// not accept. attached may be nil.
func (o object) attach(attached json.RawMessage, v variant) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(attached, &members) // it was encoded here
	for name, value := range members {
		if _, own := o[name]; !own && v.wants(name) {
			o[name] = value
		}
	}
}

// joinMembers returns an object with the members of all pieces, which arrived one after another, or
// nil if there are none. A single piece is returned unchanged. Otherwise lists are concatenated.
// Successive elements with text, the same index and the same type are pieces of one element, as in
// OpenRouter's reasoning_details. So are thoughts up to the one with the signature.
func joinMembers(pieces []json.RawMessage) json.RawMessage {
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p json.RawMessage) bool {
		return p == nil
	})
	switch len(pieces) {
	case 0:
		return nil
	case 1:
		return pieces[0]
	}
	var joined any
	for _, p := range pieces {
		var more any
		d := json.NewDecoder(bytes.NewReader(p))
		d.UseNumber()
		if d.Decode(&more) == nil {
			joined = joinPieces("", joined, more)
		}
	}
	return strictjson.Encode(joined)
}

// growing is a text that consists of pieces.
type growing struct{ strings.Builder }

// MarshalText implements [encoding.TextMarshaler].
func (g *growing) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// joinPieces returns the value of a member after another piece of it has arrived. Texts are
// concatenated or replaced, depending on the member's name.
func joinPieces(name string, before, more any) any {
	switch more := more.(type) {
	case map[string]any:
		all, ok := before.(map[string]any)
		if !ok {
			all = map[string]any{}
		}
		for name, value := range more {
			all[name] = joinPieces(name, all[name], value)
		}
		return all
	case []any:
		all, _ := before.([]any)
		for _, element := range more {
			if last := len(all) - 1; last >= 0 && continues(all[last], element) {
				all[last] = joinPieces("", all[last], element)
			} else {
				all = append(all, joinPieces("", nil, element))
			}
		}
		return all
	case string:
		if name != "text" && name != "summary" && name != "thinking" &&
			!strings.HasPrefix(name, "reasoning") {
			return more
		}
		text, ok := before.(*growing)
		if !ok {
			text = &growing{}
		}
		text.WriteString(more)
		return text
	case nil:
		return before
	}
	return more
}

// continues reports whether an element of a list is the next piece of the last one.
func continues(last, element any) bool {
	a, _ := last.(map[string]any)
	b, _ := element.(map[string]any)
	if a["data"] != nil || b["data"] != nil {
		return false
	}
	index, known := a["index"].(json.Number)
	next, _ := b["index"].(json.Number)
	kind, _ := a["type"].(string)
	other, _ := b["type"].(string)
	if !known && kind == "thinking" {
		signature, _ := a["signature"].(string)
		return kind == other && signature == "" // LiteLLM sends thoughts of Claude like that
	}
	return known && index == next && kind == other
}
