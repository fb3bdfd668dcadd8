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

// errStopped means that the caller wants no further events.
var errStopped = errors.New("stopped")

// stream is the body of a response with an answer, while it is read.
type stream struct {
	*sse.Reader
	body    *watchedBody
	origin  string // of the model
	marked  bool   // see [format]
	answer  *answer
	decoder decoder // adds to the answer
	yield   func(Event) bool
	words   string // the last data that was not JSON: a sign of life, or why there is no answer
}

// read yields the events of an answer. It returns errStopped if yield returns false.
func (c *Client) read(body *watchedBody, v variant, yield func(Event) bool) error {
	a := &answer{}
	s := &stream{Reader: sse.NewReader(body, maxEvent), body: body, origin: c.model.Origin(),
		marked: c.format.marked, answer: a, decoder: c.format.decoder(v, a), yield: yield}
	switch first, _ := s.Peek(); first {
	case '<':
		page, _ := s.Rest()
		return webPage(page)
	case '{', '[': // an error
		return s.refuseWhole()
	}
	for {
		event, failed := s.Next()
		if failed == nil {
			if err := s.decode(event); err != nil {
				return err
			} else if !a.done {
				continue
			}
		}
		s.decoder.flush()
		switch err := a.end(); {
		case err == nil:
			return s.give()
		case failed != nil && failed != io.EOF:
			return lost(failed)
		case err == errEmpty && s.words != "":
			return malformed(errors.New(s.words))
		default:
			return err
		}
	}
}

// refuseWhole returns the error in a body that is not a stream.
func (s *stream) refuseWhole() error {
	whole, err := s.Rest()
	if err != nil {
		return lost(err)
	}
	if failed := reported(sse.Event{Data: whole}); failed != nil {
		return failed
	}
	return malformed(errors.New("JSON instead of a stream; check the model's baseURL"))
}

// decode yields the events that an event of the stream stands for.
func (s *stream) decode(e sse.Event) error {
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
	if err := s.decoder.decode(e); err != nil {
		return err
	}
	if a.news+len(a.calls) > before {
		s.body.progress()
	}
	if err := a.check(); err != nil {
		return err
	}
	return s.give()
}

// decodeEvent decodes the JSON of an event. A value of another type than expected is skipped: it
// may be in an unknown event, or in a member without meaning here.
func decodeEvent(e sse.Event, into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil &&
		!errors.As(err, new(*json.UnmarshalTypeError)) {
		return malformed(err)
	}
	return nil
}

// give yields the events that are new.
func (s *stream) give() error {
	events := s.answer.events
	s.answer.events = nil
	for _, e := range events {
		switch event := e.(type) {
		case ToolCall:
			if err := checkNesting(event); err != nil {
				return err
			}
			event.From, event.Arguments = s.origin, decodedArguments(event.Arguments)
			e = event
		case Thinking:
			event.From = s.origin
			e = event
		case Finish:
			u := &event.Usage
			for _, tokens := range []*int{&u.Input, &u.Cached, &u.Output} {
				*tokens = min(max(*tokens, 0), maxTokenCount)
			}
			e = event
		}
		if !s.yield(e) {
			return errStopped
		}
	}
	return nil
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
			why := fmt.Sprintf("the arguments of a tool call have more than %d levels", maxNesting)
			return tooMuch(why)
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
