package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// buffered is how much is read at once, in bytes.
const buffered = 64 << 10

// TooLongError: a line of more bytes than are read.
type TooLongError struct {
	// Limit is the most bytes that a line may have, without its end.
	Limit int
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("a line is longer than the limit of %d bytes", e.Limit)
}

// Reader cuts a stream into lines, which end with "\n" or "\r\n". It is for one goroutine at a time.
type Reader struct {
	in    *bufio.Reader
	max   int
	inner bool  // a line is too long, and not read to its end
	err   error // of the stream, once all of it was read
}

// NewReader reads lines of at most max bytes, not counting their ends. It reads ahead.
func NewReader(in io.Reader, max int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, buffered), max: max}
}

// Append appends the next line to dst, with the end that it has: the last line of a stream may lack one. The error is
// the stream's, once there are no more lines, or a [*TooLongError]. In that case the beginning of the line was
// appended, more than the limit by one buffer at most. What remains is left to Part, or else passed over by the next
// Append.
func (r *Reader) Append(dst []byte) ([]byte, error) {
	for r.inner {
		if _, err := r.Part(); err != nil {
			return dst, err
		}
	}
	begin := len(dst)
	for r.err == nil {
		part, more := r.read()
		dst = append(dst, part...)
		switch line := dst[begin:]; {
		case len(line)-len("\r\n") > r.max, !more && len(withoutEnd(line)) > r.max:
			r.inner = more
			return dst, &TooLongError{Limit: r.max}
		case !more && len(line) > 0:
			return dst, nil
		}
	}
	return dst, r.err
}

// Part reads on in a line that was too long, and is valid until the next call. The last part ends with the line, or is
// empty; there is none without such a line. The error is the stream's, if that ends within the line.
func (r *Reader) Part() ([]byte, error) {
	if !r.inner {
		return nil, r.err
	}
	part, more := r.read()
	r.inner = more
	return part, r.err
}

// read reads the next part of a line, and reports whether the line goes on.
func (r *Reader) read() (part []byte, more bool) {
	part, err := r.in.ReadSlice('\n')
	switch {
	case err == nil:
		return part, false
	case errors.Is(err, bufio.ErrBufferFull):
		return part, true
	default:
		r.err = err
		return part, false
	}
}

// withoutEnd is a line without the end that it may have.
func withoutEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
