package llm

import (
	"bytes"
	"errors"
	"io"
)

// maxEvent is the most bytes of a line, and of the data of an event.
const maxEvent = 8 << 20

var errEventTooLong = errors.New("an event of the stream is too long")

// sseReader reads server-sent events as they arrive: an event is returned as soon as the end of its
// empty line was read.
type sseReader struct {
	from       io.Reader
	buffer     []byte
	start, end int   // of what was read and not yet used
	err        error // of from, returned when everything before it was used
	afterCR    bool  // the last line ended in a carriage return; a line feed may belong to it
	begun      bool  // the first line was read
	data       []byte
}

// next returns the next event with data. At the end of the stream the error is io.EOF.
func (s *sseReader) next() (sseEvent, error) {
	event, found := sseEvent{data: s.data[:0]}, false
	for {
		line, err := s.line()
		switch {
		case err == io.EOF && found: // many servers leave out the last empty line
		case err != nil:
			return sseEvent{}, err
		case len(line) > 0:
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				event.name = string(value)
			case "error": // llama.cpp before 2026 reports errors in this field
				event.name = "error"
				fallthrough
			case "data":
				if found {
					event.data = append(event.data, '\n')
				}
				found = true
				if event.data = append(event.data, value...); len(event.data) > maxEvent {
					return sseEvent{}, errEventTooLong
				}
			}
			continue
		case !found:
			event.name = ""
			continue
		}
		s.data = event.data
		return event, nil
	}
}

// line returns the next complete line without its end. It is valid until the next call.
func (s *sseReader) line() ([]byte, error) {
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
func (s *sseReader) fill() error {
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
		if s.end > maxEvent {
			return errEventTooLong
		}
		s.buffer = append(s.buffer, make([]byte, max(len(s.buffer), 16<<10))...)
	}
	var n int
	n, s.err = s.from.Read(s.buffer[s.end:])
	s.end += n
	return nil
}

// peek returns the first byte that is not white space, without using it.
func (s *sseReader) peek() (byte, error) {
	for {
		if unread := bytes.TrimLeft(s.buffer[s.start:s.end], "\ufeff \t\r\n"); len(unread) > 0 {
			return unread[0], nil
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// rest returns everything that was not read as events.
func (s *sseReader) rest() ([]byte, error) {
	for s.end-s.start <= maxEvent {
		if err := s.fill(); err == io.EOF {
			return s.buffer[s.start:s.end], nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, errEventTooLong
}
