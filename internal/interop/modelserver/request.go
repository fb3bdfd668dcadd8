package modelserver

import (
	"encoding/json"
	"strings"
)

// Kind is what an item of a conversation is.
type Kind string

const (
	// User is a message of the user's.
	User Kind = "user"
	// Said is a message of the model's.
	Said Kind = "said"
	// Call is a tool call of the model's.
	Call Kind = "call"
	// Result is the result of a tool call.
	Result Kind = "result"
)

// Item is a part of a conversation.
type Item struct {
	Kind Kind
	// Text is what was said, the result, or a call's arguments.
	Text string
}

// Request is what an agent asked of the model, in terms that do not depend on the wire format.
type Request struct {
	// Path is the endpoint, such as "/v1/messages".
	Path string
	// Instructions are the system prompt, and whatever else is said to the model above the user.
	Instructions string
	// Items are the conversation so far.
	Items []Item
	// Tools are those on offer.
	Tools []Tool
	// Body is the request as it came.
	Body json.RawMessage

	model  string
	stream bool
}

// Asks reports whether the request is part of a turn, and not a side errand such as a title.
func (r Request) Asks() bool { return len(r.Tools) > 0 }

// Text is all that the model was told, by whomever.
func (r Request) Text() string {
	all := []string{r.Instructions}
	for _, item := range r.Items {
		all = append(all, item.Text)
	}
	return strings.Join(all, "\n")
}

// Of are the texts of one kind, in order.
func (r Request) Of(k Kind) []string {
	var all []string
	for _, item := range r.Items {
		if item.Kind == k {
			all = append(all, item.Text)
		}
	}
	return all
}

// add appends an item, unless it is empty.
func (r *Request) add(k Kind, text string) {
	if text != "" {
		r.Items = append(r.Items, Item{Kind: k, Text: text})
	}
}

// instruct appends to the instructions.
func (r *Request) instruct(text string) {
	if r.Instructions != "" && text != "" {
		r.Instructions += "\n"
	}
	r.Instructions += text
}

// content is a text, or parts of which some have one, as all formats have it.
type content []part

type part struct {
	Type, Text string
	Content    content         // of an Anthropic tool result
	Input      json.RawMessage // of an Anthropic tool call
}

// UnmarshalJSON reads a string as a single part.
func (c *content) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*c = content{{Type: "text", Text: s}}
		return nil
	}
	var parts []part
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	*c = parts
	return nil
}

func (c content) text() string {
	var all []string
	for _, p := range c {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}
