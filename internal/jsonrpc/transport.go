package jsonrpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
)

// Transport is a connection made of messages: each is one JSON text. [NewLines] makes one from two
// byte streams; a WebSocket would be another implementation.
//
// Read and Write are called by one goroutine each. Close may be called at any time.
type Transport interface {
	// Read returns the next message, which the caller then owns. The error is io.EOF after the last
	// one. A [*TooLongError] comes with the beginning of the message, and the next Read returns the
	// message that follows it.
	Read(ctx context.Context) ([]byte, error)
	// Write sends all messages that are waiting, in order. It must not keep or change them.
	Write(ctx context.Context, m Messages) error
	// Close ends the connection and makes Read and Write return, if that is possible.
	Close() error
}

// Messages are one or more messages to be sent: JSON texts without line breaks, each followed by a
// newline.
type Messages []byte

// All returns the messages without the newlines.
func (m Messages) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(m) {
			if !yield(line[:len(line)-1]) {
				return
			}
		}
	}
}

// lines is the Transport of one message per line.
type lines struct {
	in     io.Reader
	out    io.Writer
	reader *Reader
}

// NewLines returns a Transport that reads lines of at most maxLine bytes from in and writes lines
// to out. 0 means 64 MiB. Close closes those of in and out that are io.Closers. Some streams, such
// as a terminal or an inherited blocking pipe, stay in Read after it. The contexts of Read and
// Write are not used.
func NewLines(in io.Reader, out io.Writer, maxLine int) Transport {
	return &lines{in: in, out: out, reader: NewReader(in, cmp.Or(maxLine, 64<<20))}
}

// Read implements [Transport].
func (l *lines) Read(context.Context) ([]byte, error) {
	line, err := l.reader.Append(nil)
	return trimNewline(line), err
}

// Write implements [Transport].
func (l *lines) Write(_ context.Context, m Messages) error {
	_, err := l.out.Write(m)
	return err
}

// Close implements [Transport].
func (l *lines) Close() error { return errors.Join(closeStream(l.in), closeStream(l.out)) }

// closeStream closes a stream, if it can be closed.
func closeStream(stream any) error {
	if closer, ok := stream.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
