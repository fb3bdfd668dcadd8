package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errLineTooLong says that a line was over the limit and has been skipped.
var errLineTooLong = errors.New("line over the limit")

// lineReader cuts a stream into lines.
type lineReader struct {
	in  *bufio.Reader
	max int
	err error // of the stream, once all of it was read
}

func newLineReader(in io.Reader, max int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// next returns the next line that is not blank, without its end, in memory of its own. Of
// a line over the limit it keeps no more than the limit, reads to its
// end, and returns errLineTooLong; the next call goes on after it. Any other error is
// the stream's, and comes after a last line without an end.
func (r *lineReader) next() ([]byte, error) {
	for r.err == nil {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
			return line, nil
		}
	}
	return nil, r.err
}

// line reads to the next newline, or to the end of the stream.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, more := r.part()
		if len(line)+len(part) > r.max+len("\r") {
			for more {
				_, more = r.part()
			}
			return nil, errLineTooLong
		}
		line = append(line, part...)
		if more {
			continue
		}
		if len(bytes.TrimSuffix(line, []byte("\r"))) > r.max {
			return nil, errLineTooLong
		}
		return line, nil
	}
}

// part reads the next part of a line, without the newline, and reports whether the line goes on.
func (r *lineReader) part() (part []byte, more bool) {
	part, err := r.in.ReadSlice('\n')
	switch {
	case err == nil:
		return part[:len(part)-1], false
	case errors.Is(err, bufio.ErrBufferFull):
		return part, true
	default:
		r.err = err
		return part, false
	}
}
