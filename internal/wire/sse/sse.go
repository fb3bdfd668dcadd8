// Package sse reads server-sent events as browsers do: lines end with "\n", "\r\n" or "\r", the
// stream may begin with a byte order mark, and unknown fields are ignored.
package sse

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
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
	from       io.Reader
	max        int // bytes of a line, and of the data of an event
	buffer     []byte
	start, end int   // of what was read and not yet used
	err        error // of from, returned when everything before it was used
	afterCR    bool  // the last line ended in a carriage return; a line feed may belong to it
	begun      bool  // the first line was read
	data       []byte
	lastID     string
	retry      time.Duration
}

// NewReader returns a Reader of from, for lines and events of at most max bytes.
func NewReader(from io.Reader, max int) *Reader { return &Reader{from: from, max: max} }

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
	searched := 0
	for {
		if s.afterCR && s.start < s.end {
			if s.afterCR = false; s.buffer[s.start] == '\n' {
				s.start++
			}
		}
		unread := s.buffer[s.start:s.end]
		if i := bytes.IndexAny(unread[searched:], "\r\n"); i >= 0 {
			line := unread[:searched+i]
			s.start += len(line) + 1
			s.afterCR = unread[len(line)] == '\r'
			if !s.begun {
				s.begun = true
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			return line, nil
		}
		searched = len(unread)
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more.
func (s *Reader) fill() error {
	if s.err != nil {
		return s.err
	}
	switch {
	case s.start == s.end:
		s.start, s.end = 0, 0
	case s.end == len(s.buffer) && s.start > 0:
		s.end = copy(s.buffer, s.buffer[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buffer) {
		if s.end > s.max {
			return ErrTooLong
		}
		s.buffer = append(s.buffer, make([]byte, max(len(s.buffer), 16<<10))...)
	}
	var n int
	n, s.err = s.from.Read(s.buffer[s.end:])
	s.end += n
	return nil
}

// Peek returns the first byte that is not white space, without using it.
func (s *Reader) Peek() (byte, error) {
	for {
		if unread := bytes.TrimLeft(s.buffer[s.start:s.end], "\ufeff \t\r\n"); len(unread) > 0 {
			return unread[0], nil
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// Rest returns everything that was not read as events.
func (s *Reader) Rest() ([]byte, error) {
	for s.end-s.start <= s.max {
		if err := s.fill(); err == io.EOF {
			return s.buffer[s.start:s.end], nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, ErrTooLong
}
