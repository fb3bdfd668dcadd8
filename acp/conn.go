package acp

import (
	"context"
	"io"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Conn is a connection to a client, made of messages: each is one JSON text, such as a line or the
// content of a WebSocket message. [NewLines] makes one from two byte streams.
//
// Read and Write are called by one goroutine each. Close may be called at any time. Read has no
// context, because it must not end before Close: until then the server may still send answers, and
// with many libraries a read that is cancelled closes the connection.
//
// A Conn may also have the methods Reserve(n int) bool and Release(n int). Reserve is called for
// the n bytes of each request, and Release when the request is answered. If Reserve returns false,
// the request is refused. This limits the memory of several connections together.
//
// If the client learns which messages were not read, a Conn may also have a method StopRead(),
// which makes Read return io.EOF, now and later. It is called before a connection ends for another
// reason than the client: then no message is read that is not answered.
type Conn interface {
	// Read returns the next message, which the caller then owns. The error is io.EOF after the last
	// one. Read need not limit the length of messages, but may.
	Read() ([]byte, error)
	// Write sends a message, which has no line breaks. It must not keep or change it.
	Write(ctx context.Context, message []byte) error
	// Close ends the connection and makes Read and Write return.
	Close() error
}

// NewLines returns a Conn that reads lines from in and writes lines to out, which may be the same
// connection. Close closes those of in and out that are io.Closers. The context of Write is not
// used.
func NewLines(in io.Reader, out io.Writer) Conn {
	return &lines{Transport: jsonrpc.NewLines(in, out, 0), in: in, out: out}
}

type lines struct {
	jsonrpc.Transport
	in  io.Reader
	out io.Writer
}

// Write implements [Conn].
func (l *lines) Write(_ context.Context, message []byte) error {
	_, err := l.out.Write(append(message[:len(message):len(message)], '\n'))
	return err
}

// newTransport returns the transport over c, for messages of up to maxLine bytes; 0 means 64 MiB.
func newTransport(c Conn, maxLine int) jsonrpc.Transport {
	if l, ok := c.(*lines); ok {
		return jsonrpc.NewLines(l.in, l.out, maxLine)
	}
	return &transport{c, jsonrpc.LineLimit(maxLine)}
}

// transport is the transport over a Conn.
type transport struct {
	Conn
	maxLine int
}

// Read implements [jsonrpc.Transport].
func (t *transport) Read() ([]byte, error) {
	message, err := t.Conn.Read()
	if err == nil && len(message) > t.maxLine {
		return message[:t.maxLine], &jsonrpc.TooLongError{Limit: t.maxLine}
	}
	return message, err
}

// StopRead implements [jsonrpc.ReadStopper].
func (t *transport) StopRead() bool {
	s, ok := t.Conn.(interface{ StopRead() })
	if ok {
		s.StopRead()
	}
	return ok
}

// Write implements [jsonrpc.Transport].
func (t *transport) Write(ctx context.Context, m *jsonrpc.Messages) error {
	for message := range m.All() {
		if err := t.Conn.Write(ctx, message); err != nil {
			return err
		}
	}
	return nil
}
