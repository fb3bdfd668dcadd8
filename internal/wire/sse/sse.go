// Package sse reads server-sent events as browsers do: lines end with "\n", "\r\n" or "\r", the
// stream may begin with a byte order mark, and unknown fields are ignored.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// ErrTooLong is the error of a stream with a line or an event over the limit.
var ErrTooLong = errors.New("an event of the stream is too long")

// Event is a server-sent event.
type Event struct {
	Name string // "" if the server does not name its events
	Data []byte // valid until the next event is read
}

// Reader reads server-sent events as they arrive: an event is returned as soon as the end of its
// empty line was read. It must not be used concurrently.
type Reader struct {
	from    *bufio.Reader
	max     int    // bytes of a line, and of the data of an event
	text    []byte // the line that is being read
	afterCR bool   // the last line ended in a carriage return; a line feed may belong to it
	begun   bool   // the first line was read
	data    []byte
	lastID  string
	retry   time.Duration
}

// NewReader returns a Reader of from, for lines and events of at most max bytes.
func NewReader(from io.Reader, max int) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, 16<<10), max: max}
}

// LastID returns the last id that the stream has set, or "".
func (s *Reader) LastID() string { return s.lastID }

// Retry returns how long to wait before the stream is asked for again, 0 if it has not said that.
func (s *Reader) Retry() time.Duration { return s.retry }

// Next returns the next event with data. At the end of the stream the error is io.EOF.
func (s *Reader) Next() (Event, error) {
	event, found := Event{Data: s.data[:0]}, false
	for {
		line, err := s.line()
		switch {
		case err == io.EOF && found: // many servers leave out the last empty line
		case err != nil:
			return Event{}, err
		case len(line) > 0:
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				event.Name = string(value)
			case "error": // llama.cpp before 2026 reports errors in this field
				event.Name = "error"
				fallthrough
			case "data":
				if found {
					event.Data = append(event.Data, '\n')
				}
				found = true
				if event.Data = append(event.Data, value...); len(event.Data) > s.max {
					return Event{}, ErrTooLong
				}
			case "id":
				s.lastID = string(value)
			case "retry":
				if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 {
					s.retry = time.Duration(n) * time.Millisecond
				}
			}
			continue
		case !found:
			event.Name = ""
			continue
		}
		s.data = event.Data
		return event, nil
	}
}

// line returns the next complete line without its end. It is valid until the next call.
func (s *Reader) line() ([]byte, error) {
	for s.text = s.text[:0]; len(s.text) <= s.max; {
		if _, err := s.from.Peek(1); err != nil {
			return nil, err
		}
		unread, _ := s.from.Peek(s.from.Buffered())
		if s.afterCR && unread[0] == '\n' {
			unread = unread[1:]
			_, _ = s.from.Discard(1)
		}
		s.afterCR = false
		end := bytes.IndexAny(unread, "\r\n")
		if end < 0 {
			s.text = append(s.text, unread...)
			_, _ = s.from.Discard(len(unread))
			continue
		}
		s.text = append(s.text, unread[:end]...)
		s.afterCR = unread[end] == '\r'
		_, _ = s.from.Discard(end + 1)
		if !s.begun {
			s.begun = true
			return bytes.TrimPrefix(s.text, []byte("\ufeff")), nil
		}
		return s.text, nil
	}
	return nil, ErrTooLong
}

// Peek returns the first byte that is not white space, without using it.
func (s *Reader) Peek() (byte, error) {
	for n := 1; ; n++ {
		unread, err := s.from.Peek(n)
		text := bytes.TrimLeft(unread, "\ufeff \t\r\n")
		if len(text) > 0 && utf8.FullRune(text) {
			return text[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// Rest returns everything that was not read as events.
func (s *Reader) Rest() ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(s.from, int64(s.max)+1))
	switch {
	case err != nil:
		return nil, err
	case len(rest) > s.max:
		return nil, ErrTooLong
	}
	return rest, nil
}
