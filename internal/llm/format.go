package llm

import (
	"encoding/base64"
	"encoding/json"
	"slices"

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
		complete: completeOpenAI, encode: encodeChat, decoder: newChatDecoder,
	},
	Responses: {
		answers: "/responses", models: "/models", maxTools: 128,
		keyHeader: "Authorization", keyPrefix: "Bearer ",
		complete: completeOpenAI, encode: encodeResponses, decoder: newResponsesDecoder,
	},
	Anthropic: {
		answers: "/v1/messages", models: "/v1/models?limit=1000",
		keyHeader: "X-Api-Key", version: "2023-06-01",
		complete: completeAnthropic, encode: encodeAnthropic, decoder: newAnthropicDecoder,
	},
}

// decoder decodes the stream of one answer, event by event.
type decoder interface {
	// decode adds what an event of the stream stands for. An error means that the event is not of
	// the format (see [malformed]).
	decode(e sse.Event) error
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
	if m.Takes("") && m.Takes(PDF) {
		return messages
	}
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
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Parts = replaceMedia(messages[i].Parts, note)
	}
	return messages
}

func replaceMedia(parts []Part, note func(Media) Text) []Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		switch p := p.(type) {
		case Media:
			if text := note(p); text != "" {
				parts[i] = text
			}
		case ToolResult:
			p.Content = replaceMedia(p.Content, note)
			parts[i] = p
		}
	}
	return parts
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

// isMarked returns a function that reports whether the message with an index ends a part of the
// request that the server should cache: the last two messages of the user do. The first of them
// ended the previous request, and servers do not search far back for it.
func isMarked(messages []Message) func(i int) bool {
	first, left := len(messages), 2
	for left > 0 && first > 0 {
		if first--; messages[first].Role == User {
			left--
		}
	}
	return func(i int) bool { return i >= first && messages[i].Role == User }
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
