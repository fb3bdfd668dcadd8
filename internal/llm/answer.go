package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

// Limits on answers, because servers and models do not always stop.
const (
	// maxAnswer limits the text, thinking and arguments of tool calls in an answer, in bytes.
	maxAnswer = 8 << 20
	// maxCalls limits the tool calls of an answer.
	maxCalls = 128
	// maxParts limits the parts that are read of an answer that is not streamed.
	maxParts = 256
	// maxNesting is how deep arguments of tool calls may be nested. Many clients cannot read JSON
	// with more than 128 levels.
	maxNesting = 64
	// maxTokenCount is the largest number of tokens that is plausible.
	maxTokenCount = 1 << 30
)

// answerSize counts the tool calls of an answer, and the bytes of its text, thinking and arguments.
// news counts only the bytes that the model itself has written.
type answerSize struct{ bytes, calls, news int }

// wrote counts bytes that the model has written.
func (s *answerSize) wrote(n int) {
	s.bytes += n
	s.news += n
}

// written returns how many bytes of the model's words have arrived. It grows with each piece.
func (s answerSize) written() int { return s.news + s.calls }

// check returns an error if that exceeds the limits of an answer: most bytes, and maxCalls.
func (s answerSize) check(most int) error {
	switch {
	case s.calls > maxCalls:
		return tooMuch(fmt.Sprintf("it calls more than %d tools at once", maxCalls))
	case s.bytes > most:
		return tooMuch("it is longer than " + text.Size(most))
	}
	return nil
}

// tooMuch returns the error for an answer that exceeds a limit.
func tooMuch(why string) *Error {
	return &Error{Kind: Malformed, Message: "the model's answer was stopped, because " + why}
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
	if inner = strings.TrimSpace(inner); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
		return inner
	}
	return arguments
}

// errStopped means that the caller wants no further events.
var errStopped = errors.New("stopped")

// answer is an answer as it is read from the body of a response.
type answer struct {
	origin  string // of the model
	most    int    // bytes
	stream  *sse.Reader
	decoder decoder
	yield   func(Event) bool
	// progress is called when a part of the answer has arrived.
	progress func()
	words    string // the last data that was not JSON: a sign of life, or why there is no answer
}

// read yields the events of an answer. It returns errStopped if yield returns false.
func (c *Client) read(body io.Reader, v variant, yield func(Event) bool) error {
	a := answer{origin: c.model.Origin(), most: c.longest, stream: sse.NewReader(body, maxEvent),
		decoder: c.format.decoder(v), yield: yield, progress: func() {}}
	if watched, ok := body.(*watchedBody); ok {
		a.progress = watched.progress
	}
	switch first, _ := a.stream.Peek(); first {
	case '<':
		page, _ := a.stream.Rest()
		return webPage(page)
	case '{', '[': // an error, or the answer of a proxy that ignores that a stream was asked for
		return a.readWhole()
	}
	for {
		event, failed := a.stream.Next()
		if failed == nil {
			if done, err := a.decode(event); err != nil {
				return err
			} else if !done {
				continue
			}
		}
		switch last, err := a.decoder.end(); {
		case err == nil:
			return a.give(last)
		case failed != nil && failed != io.EOF:
			return lost(failed)
		case err == errEmpty && a.words != "":
			return malformed(errors.New(a.words))
		default:
			return err
		}
	}
}

// readWhole reads an answer that is not streamed: JSON, and what some proxies add for streams.
func (a *answer) readWhole() error {
	whole, err := a.stream.Rest()
	if err != nil {
		return lost(err)
	}
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(whole)).Decode(&value) == nil {
		whole = value
	}
	if _, err := a.decode(sse.Event{Data: whole}); err != nil {
		return err
	}
	last, err := a.decoder.end()
	if err != nil {
		return malformed(errors.New("JSON without a message of the model; " +
			"check the model's baseURL"))
	}
	return a.give(last)
}

// decode yields the events that an event of the stream stands for. It reports whether it was the
// last one.
func (a *answer) decode(e sse.Event) (done bool, err error) {
	if failed := reported(e); failed != nil {
		return true, failed
	}
	if words := bytes.TrimSpace(e.Data); !isEnd(e) && bytes.IndexAny(words, "{[") != 0 {
		if len(words) > 0 && words[0] != ':' {
			a.words = string(words)
		}
		return false, nil
	}
	before := a.decoder.written()
	events, done, err := a.decoder.decode(e)
	if a.decoder.written() > before {
		a.progress()
	}
	if err == nil {
		err = a.decoder.check(a.most)
	}
	if err == nil {
		err = a.give(events)
	}
	return done, err
}

// isEnd reports whether an event says that the stream ends, as servers do in all formats.
func isEnd(e sse.Event) bool { return string(bytes.Trim(e.Data, "[] \t\n")) == "DONE" }

// decodeEvent decodes the JSON of an event. A value of another type than expected is skipped: it may
// be in an unknown event, or in a member without meaning here.
func decodeEvent(e sse.Event, into any) error {
	var unexpected *json.UnmarshalTypeError
	if err := json.Unmarshal(e.Data, into); err != nil && !errors.As(err, &unexpected) {
		return malformed(err)
	}
	return nil
}

func (a *answer) give(events []Event) error {
	for _, e := range events {
		switch event := e.(type) {
		case ToolCall:
			if err := checkNesting(event); err != nil {
				return err
			}
			event.From, event.Arguments = a.origin, decodedArguments(event.Arguments)
			e = event
		case Thinking:
			event.From = a.origin
			e = event
		case Finish:
			u := &event.Usage
			for _, tokens := range []*int{&u.Input, &u.Cached, &u.Output} {
				*tokens = min(max(*tokens, 0), maxTokenCount)
			}
			e = event
		}
		if !a.yield(e) {
			return errStopped
		}
	}
	return nil
}
