package jsonrpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
)

// Transport is a connection made of messages: each is one JSON text. [NewLines] makes one from two
// byte streams.
//
// Read and Write are called by one goroutine each. Close may be called at any time.
type Transport interface {
	// Read returns the next message, which the caller then owns. The error is io.EOF after the last
	// one. A [*TooLongError] comes with the beginning of the message, and the next Read returns the
	// message that follows it.
	Read() ([]byte, error)
	// Write sends all messages that are waiting, in order. It must not keep or change them.
	Write(ctx context.Context, m *Messages) error
	// Close ends the connection and makes Read and Write return, if that is possible.
	Close() error
}

// ReadStopper is a [Transport] whose peer learns which messages were not read before Close.
type ReadStopper interface {
	// StopRead makes Read return io.EOF, now and later. It returns false if that is not possible.
	StopRead() bool
}

// Messages are one or more messages to be sent: JSON texts without line breaks, each followed by a
// newline. A message with large params or a large result consists of several pieces, so that the
// large part need not be copied.
type Messages struct {
	pieces [][]byte // the last one can be appended to
	size   int
}

// All returns the messages without the newlines. Each is valid until the next iteration.
func (m *Messages) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var begun []byte // a message in several pieces
		for _, piece := range m.pieces {
			for part := range bytes.Lines(piece) {
				text, ends := bytes.CutSuffix(part, []byte("\n"))
				if begun != nil || !ends {
					text = append(begun, text...)
					begun = text
				}
				if !ends {
					continue
				}
				if !yield(text) {
					return
				}
				begun = nil
			}
		}
	}
}

// writeTo writes the messages to w. They stay as they are.
func (m *Messages) writeTo(w io.Writer) error {
	for _, piece := range m.pieces {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// add appends a message. Its payload is not copied if it is large.
func (m *Messages) add(message *outgoing) {
	if len(m.pieces) == 0 {
		m.pieces = append(m.pieces, nil)
	}
	last := len(m.pieces) - 1
	before := len(m.pieces[last])
	if len(message.payload) < keepPayload || hasLineBreak(message.payload) {
		b := slices.Grow(m.pieces[last], message.size())
		m.pieces[last] = append(message.appendTo(b), '\n')
		m.size += len(m.pieces[last]) - before
		return
	}
	head := message.appendHead(slices.Grow(m.pieces[last], message.size()-len(message.payload)))
	m.pieces[last] = head
	m.pieces = append(m.pieces, message.payload, []byte("}\n"))
	m.size += len(head) - before + len(message.payload) + len("}\n")
}

// reset removes all messages, and keeps the first piece's memory for the next ones.
func (m *Messages) reset() {
	clear(m.pieces[1:])
	m.pieces, m.size = m.pieces[:1], 0
	m.pieces[0] = m.pieces[0][:0]
}

// keepPayload is the length of the shortest payload that is not copied.
const keepPayload = 64 << 10

// hasLineBreak reports whether JSON has line breaks between its tokens.
func hasLineBreak(raw []byte) bool {
	return bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0
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
	return &lines{in: in, out: out, reader: NewReader(in, LineLimit(maxLine))}
}

// LineLimit returns the length of the longest message that is read, in bytes, for a configured
// maxLine, which may be 0.
func LineLimit(maxLine int) int { return cmp.Or(maxLine, 64<<20) }

// Read implements [Transport].
func (l *lines) Read() ([]byte, error) {
	line, err := l.reader.Append(nil)
	return trimNewline(line), err
}

// Write implements [Transport].
func (l *lines) Write(_ context.Context, m *Messages) error {
	return m.writeTo(l.out)
}

// Close implements [Transport].
func (l *lines) Close() error { return errors.Join(CloseStream(l.in), CloseStream(l.out)) }

// CloseStream closes a stream, if it can be closed.
func CloseStream(stream any) error {
	if closer, ok := stream.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
