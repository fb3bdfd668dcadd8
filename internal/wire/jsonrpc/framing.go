package jsonrpc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// TooLongError is returned by Reader.Append for a line over the limit.
type TooLongError struct {
	// Limit is the longest line that is read, in bytes without its newline.
	Limit int
	// What is too long, "" for a line.
	What string
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s is longer than the limit of %d bytes", cmp.Or(e.What, "a line"), e.Limit)
}

// bufferSize is how much a Reader reads at once, in bytes.
const bufferSize = 64 << 10

// mark is a byte order mark, with which some programs begin a stream, or each line.
var mark = []byte("\uFEFF")

// Reader splits a stream into lines that end with "\n" or "\r\n". A byte order mark at the
// beginning of a line is left out. It must not be used concurrently.
type Reader struct {
	in     *bufio.Reader
	max    int
	inLine bool  // the last line was too long and has not been read to its end
	err    error // of the stream, after its last byte was read
}

// NewReader returns a Reader for lines of at most max bytes, not counting their newlines. It reads
// ahead.
func NewReader(in io.Reader, max int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, bufferSize), max: min(max, math.MaxInt-bufferSize)}
}

// Append appends the next line, including its newline, to dst. The last line of a stream may have
// no newline. The error is the stream's once there are no more lines, or a [*TooLongError]. In that
// case the beginning of the line was appended, exceeding the limit by one buffer at most, and the
// next Append skips the rest.
func (r *Reader) Append(dst []byte) ([]byte, error) {
	for r.inLine {
		_, r.inLine = r.read()
	}
	begin, length := len(dst), 0 // of the line
	for r.err == nil {
		part, more := r.read()
		if length == 0 {
			part = bytes.TrimPrefix(part, mark)
		}
		dst, length = append(r.grow(dst, len(part)), part...), length+len(part)
		tooLong := length-len("\r\n") > r.max
		if more && !tooLong {
			continue
		}
		switch {
		case tooLong, len(trimNewline(dst[begin:])) > r.max:
			r.inLine = more
			return dst, &TooLongError{Limit: r.max}
		case length > bufferSize && cap(dst) > 2*len(dst):
			return bytes.Clone(dst), nil
		case length > 0:
			return dst, nil
		}
	}
	return dst, r.err
}

// grow makes room for n more bytes of a line. It grows in large steps, because each copy of a long
// line becomes garbage that stays for a while. Unused capacity needs no memory until it is written
// to.
func (r *Reader) grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	size := max(len(dst)+n, min(4*len(dst), r.max+bufferSize))
	return append(make([]byte, 0, size), dst...)
}

// read reads the next part of a line, and reports whether the line continues.
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

func trimNewline(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// Writer writes lines on its own goroutine, so that a caller waits for a slow peer no longer than
// its context. It is safe for concurrent use.
type Writer struct {
	out     io.Writer
	lines   chan queuedLine
	ended   context.Context // its cause is the reason
	end     context.CancelCauseFunc
	writing sync.WaitGroup
}

type queuedLine struct {
	text    []byte
	written chan struct{} // closed once written
}

// NewWriter returns a Writer that writes to out until End is called or a write fails. Then it calls
// onEnd once, unless that is nil; closing out there unblocks a pending write.
func NewWriter(out io.Writer, onEnd func()) *Writer {
	w := &Writer{out: out, lines: make(chan queuedLine)}
	w.ended, w.end = context.WithCancelCause(context.Background())
	if onEnd != nil {
		context.AfterFunc(w.ended, onEnd)
	}
	w.writing.Go(w.run)
	return w
}

func (w *Writer) run() {
	for {
		select {
		case l := <-w.lines:
			if _, err := w.out.Write(l.text); err != nil {
				w.End(err)
				return
			}
			close(l.written)
		case <-w.ended.Done():
			return
		}
	}
}

// Write writes a message and a newline, and waits until that is done. It takes ownership of
// message. The error is the reason why the writer ended, or the cause of ctx; in the latter case
// the whole line may still be written later.
func (w *Writer) Write(ctx context.Context, message []byte) error {
	l := queuedLine{append(message, '\n'), make(chan struct{})}
	select {
	case w.lines <- l:
	case <-w.ended.Done():
		return w.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-l.written:
		return nil
	case <-w.ended.Done():
		return w.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End makes every Write fail with err from now on, unless the writer has already ended. It does not
// wait.
func (w *Writer) End(err error) { w.end(err) }

// Ended returns a channel that is closed when the writer has ended.
func (w *Writer) Ended() <-chan struct{} { return w.ended.Done() }

// Err returns the reason why the writer has ended, or nil.
func (w *Writer) Err() error { return context.Cause(w.ended) }

// Wait waits until the writer's goroutine has returned, which happens after End once out does not
// block.
func (w *Writer) Wait() { w.writing.Wait() }
