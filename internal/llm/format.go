package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxAnswer is how much an answer may say, think and write as arguments of tool calls, in
	// bytes.
	maxAnswer = 8 << 20
	// maxCalls is how many tools an answer may call.
	maxCalls = 128
	// maxParts is how many parts of an answer that is not streamed are read.
	maxParts = 256
	// maxNesting is how deep arguments of tool calls may be nested. Many clients cannot read JSON
	// with more than 128 levels.
	maxNesting = 64
	// maxTokenCount is the largest number of tokens that is believed.
	maxTokenCount = 1 << 30
)

// counts are the tool calls of an answer and the bytes that it says, thinks and writes as
// arguments.
type counts struct{ bytes, calls int }

// check returns an error if that is too much: servers and models do not always end.
func (c counts) check() error {
	switch {
	case c.calls > maxCalls:
		return &Error{Kind: Malformed, Message: fmt.Sprintf("the model's answer was stopped, because it calls more than %d tools at once", maxCalls)}
	case c.bytes > maxAnswer:
		return &Error{Kind: Malformed, Message: "the model's answer was stopped, because it is longer than " + text.Size(maxAnswer)}
	}
	return nil
}

// format is a wire format.
type format interface {
	// paths returns the paths of the answers and of the list of models, below the model's BaseURL.
	paths() (answer, list string)
	// header returns the headers that the format adds to each request. key may be "".
	header(key string) http.Header
	// encode returns the body of a request.
	encode(m Model, r Request) []byte
	// learn notes what the server does not accept or requires, according to its response to a
	// request that it rejected. Later requests are encoded accordingly.
	learn(response []byte)
	// decoder returns a decoder for the stream of one answer.
	decoder() decoder
}

// decoder decodes the stream of one answer, event by event.
type decoder interface {
	// decode returns what an event of the stream means. done reports whether it is the last one of
	// interest, after which end is called. An error says that the stream is an error, see
	// [describe], or not of the format, see [malformed].
	decode(e sseEvent) (events []Event, done bool, err error)
	// check returns an error if more has arrived than an answer may have.
	check() error
	// end returns what remains to be said, with a [Finish] at the end, when the stream has ended or
	// the connection was lost. It returns [errCut] if the answer is not complete.
	end() ([]Event, error)
}

// checkNesting returns an error if the arguments of a tool call are nested too deeply.
func checkNesting(c ToolCall) error {
	level := 0
	for d := json.NewDecoder(strings.NewReader(c.Arguments)); ; {
		token, err := d.Token()
		if err != nil {
			return nil // at the end, or not JSON
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		if level > maxNesting {
			return &Error{Kind: Malformed, Message: fmt.Sprintf("the model's answer was stopped, because the arguments of a tool call have more than %d levels", maxNesting)}
		}
	}
}

// sseEvent is a server-sent event.
type sseEvent struct {
	name string // "" if the server does not name its events
	data []byte // valid until the next event is read
}

// object is a JSON object of a request.
type object map[string]any

// newFormat returns the format of an API, for one client.
func newFormat(a API) format {
	if a == Anthropic {
		return anthropicFormat{}
	}
	return &openAIFormat{}
}

// maxTokens returns how many tokens the answer may have, 0 if that is up to the server.
func maxTokens(m Model, r Request) int {
	if m.MaxTokens == 0 || r.MaxTokens == 0 {
		return max(m.MaxTokens, r.MaxTokens)
	}
	return min(m.MaxTokens, r.MaxTokens)
}

// WithoutImages returns messages with a note in place of each image.
func WithoutImages(messages []Message) []Message {
	var without func([]Part) []Part
	without = func(parts []Part) []Part {
		parts = slices.Clone(parts)
		for i, p := range parts {
			switch p := p.(type) {
			case Image:
				parts[i] = Text("[An image was left out, because you cannot see images.]")
			case ToolResult:
				p.Content = without(p.Content)
				parts[i] = p
			}
		}
		return parts
	}
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Parts = without(messages[i].Parts)
	}
	return messages
}

// input returns the arguments, or an empty object if they are not a JSON object. Servers reject a
// conversation with anything else, also if the model wrote it.
func (c ToolCall) input() json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &object) != nil || object == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Arguments)
}
