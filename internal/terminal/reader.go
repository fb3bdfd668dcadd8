package terminal

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
)

// A Reader reads what a person types, or what is piped, as long as a context lasts. It must not be
// used concurrently.
type Reader struct {
	in      io.Reader
	rest    []byte    // what was read and not used
	reading chan read // receives the result of a running read; nil if none runs
}

// read is the result of a read.
type read struct {
	data []byte
	err  error
}

// NewReader returns a Reader of in.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Read reads like an [io.Reader] until ctx ends.
func (r *Reader) Read(ctx context.Context, b []byte) (n int, err error) {
	if len(r.rest) == 0 {
		err = r.more(ctx)
	}
	n = copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, err
}

// Line returns the next line, without white space around it. At the end of the input it returns the
// unfinished line with the error.
func (r *Reader) Line(ctx context.Context) (string, error) {
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		var err error
		if !whole {
			err = r.more(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case whole || err != nil:
			r.rest = rest
			return strings.TrimSpace(string(line)), err
		}
	}
}

// more reads more. The read cannot be interrupted: where it has to wait, it ends with the program,
// or gets what the user types at the next question.
func (r *Reader) more(ctx context.Context) error {
	if r.reading == nil {
		if Is(r.in) {
			awaitTyped(ctx, r.in.(*os.File))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		reading := make(chan read, 1)
		r.reading = reading
		go func() {
			data := make([]byte, 64<<10)
			n, err := r.in.Read(data)
			reading <- read{data[:n], err}
		}()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case now := <-r.reading:
		r.reading, r.rest = nil, append(r.rest, now.data...)
		return now.err
	}
}

// Forget discards what was typed before a question is shown: it cannot be the answer.
func (r *Reader) Forget() {
	r.rest = nil
	select {
	case <-r.reading:
		r.reading = nil
	default: // it still reads, or none does
	}
	discardTyped(r.in.(*os.File))
}
