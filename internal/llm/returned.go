package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// returned returns messages in the form in which the model gets them back: with its own IDs of tool
// calls, if they are unique, and without what belongs to other models.
func (m Model) returned(messages []Message) []Message {
	origin := m.Origin()
	ids, taken := map[string]string{}, map[string]bool{}
	messages = slices.Clone(messages)
	for i := range messages {
		parts := make([]Part, 0, len(messages[i].Parts))
		for _, part := range messages[i].Parts {
			switch p := part.(type) {
			case Thinking:
				if p.From != origin {
					continue
				}
			case ToolCall:
				own := p.ID
				if p.From != origin {
					p.Attached = nil
				} else if p.Given != "" && !taken[p.Given] {
					p.ID = p.Given
				}
				ids[own], taken[p.ID] = p.ID, true
				part = p
			case ToolResult:
				p.ID = cmp.Or(ids[p.ID], p.ID)
				part = p
			}
			parts = append(parts, part)
		}
		messages[i].Parts = parts
	}
	return messages
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
