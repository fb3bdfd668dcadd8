package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

// errStopped means that the caller wants no further events, not even this.
var errStopped = &Error{Message: "stopped"}

// stream is the body of a response with an answer, while it is read.
type stream struct {
	*sse.Reader
	body    *watchedBody
	marked  bool // see [format]
	answer  *answer
	decoder decoder // adds to the answer
	yield   func(Event) bool
	words   string // the last data that was not JSON: a sign of life, or why there is no answer
}

// read yields the events of an answer. It fails with errStopped if yield returns false.
func (c *Client) read(body *watchedBody, v variant, yield func(Event) bool) *failure {
	a := &answer{origin: c.model.Origin()}
	s := &stream{Reader: sse.NewReader(body, maxEvent), body: body, marked: c.format.marked,
		answer: a, decoder: c.format.decoder(v, a), yield: yield}
	if first, _ := s.Peek(); first == '<' || first == '{' || first == '[' {
		if _, failed := whole(s.Reader); failed != nil {
			return failed
		}
		return malformed("JSON instead of a stream; check the model's baseURL")
	}
	var ended error
	for ended == nil && !a.done {
		var event sse.Event
		if event, ended = s.Next(); ended == nil {
			if failed := s.decode(event); failed != nil {
				return failed
			}
		}
	}
	s.decoder.flush()
	failed := a.end()
	switch {
	case failed == nil:
		return s.give()
	case ended != nil && ended != io.EOF:
		return lost(ended)
	case !a.began && s.words != "":
		return malformed(s.words)
	}
	return failed
}

// whole returns a body that is not a stream. It fails if that says that something is wrong.
func whole(r *sse.Reader) ([]byte, *failure) {
	first, _ := r.Peek()
	body, err := r.Rest()
	switch {
	case first == '<':
		return nil, webPage(body)
	case err != nil:
		return nil, lost(err)
	}
	return body, reported(sse.Event{Data: body})
}

// decode yields the events that an event of the stream stands for.
func (s *stream) decode(e sse.Event) *failure {
	if failed := reported(e); failed != nil {
		return failed
	}
	a := s.answer
	if string(bytes.Trim(e.Data, "[] \t\n")) == "DONE" { // in some formats the end of the stream
		a.done = s.marked
		return nil
	}
	if words := bytes.TrimSpace(e.Data); bytes.IndexAny(words, "{[") != 0 {
		if len(words) > 0 && words[0] != ':' {
			s.words = string(words)
		}
		return nil
	}
	before := a.news + len(a.calls)
	if failed := s.decoder.decode(e); failed != nil {
		return failed
	}
	if a.news+len(a.calls) > before {
		s.body.progress()
	}
	if failed := a.check(); failed != nil {
		return failed
	}
	return s.give()
}

// decodeEvent decodes the JSON of an event. A value of another type than expected is skipped: it
// may be in an unknown event, or in a member without meaning here.
func decodeEvent(e sse.Event, into any) *failure {
	if err := json.Unmarshal(e.Data, into); err != nil &&
		!errors.As(err, new(*json.UnmarshalTypeError)) {
		return malformed(err.Error())
	}
	return nil
}

// give yields the events that are new.
func (s *stream) give() *failure {
	events := s.answer.events
	s.answer.events = nil
	for _, e := range events {
		if call, ok := e.(ToolCall); ok {
			if failed := checkNesting(call); failed != nil {
				return failed
			}
			call.Arguments = decodedArguments(call.Arguments)
			e = call
		}
		if !s.yield(e) {
			return &failure{why: errStopped}
		}
	}
	return nil
}

// checkNesting fails if the arguments of a tool call are nested too deeply.
func checkNesting(c ToolCall) *failure {
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
			why := "the arguments of a tool call have more than %d levels"
			return tooMuch(fmt.Sprintf(why, maxNesting))
		}
	}
}

// decodedArguments returns the arguments of a tool call. Some models and servers encode the object
// twice: as a JSON string with JSON.
func decodedArguments(arguments string) string {
	const most = 3 // times
	inner := arguments
	for range most {
		if json.Unmarshal([]byte(inner), &inner) != nil {
			break
		}
	}
	if inner = strings.TrimSpace(inner); strings.HasPrefix(inner, "{") &&
		json.Valid([]byte(inner)) {
		return inner
	}
	return arguments
}
