package mcprelay

import (
	"bufio"
	"errors"
	"io"
)

// lines cuts a stream into lines with their ends.
type lines struct {
	in   *bufio.Reader
	max  int
	long []byte
}

// keptLong is the most memory that is kept for the next long line.
const keptLong = 1 << 20

func newLines(in io.Reader, max int) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// next reads a line, valid until the next read. Of one over the limit it is a part, and more is true: part reads
// what remains. What comes with the stream's error may be a last line without an end.
func (l *lines) next() (line []byte, more bool, err error) {
	line, err = l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, false, err
	}
	if cap(l.long) > keptLong {
		l.long = nil
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long) > l.max {
			return l.long, true, nil
		}
		line, err = l.in.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, false, err
}

// part reads the next part of a line that next returned a part of.
func (l *lines) part() ([]byte, error) {
	part, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return part, err
}
