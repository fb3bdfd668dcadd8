package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// stdioTransport is a connection over a process's streams, one message per line. Unlike the MCP
// SDK's, it survives lines that are not messages, and servers that do not read.
type stdioTransport struct {
	*inbox
	writer *jsonrpc.Writer // ends with the connection

	// Used by Read only.
	reader *jsonrpc.Reader
	queued []mcpjsonrpc.Message // received together with the last one
}

// newStdioTransport returns a transport from and to a process's streams, which it closes with the
// connection.
func newStdioTransport(b *inbox, from io.ReadCloser, to io.WriteCloser) *stdioTransport {
	writer := jsonrpc.NewWriter(to, func() {
		_ = to.Close()
		_ = from.Close()
	})
	reader := jsonrpc.NewReader(from, b.limits.MaxMessage)
	return &stdioTransport{inbox: b, writer: writer, reader: reader}
}

// Connect implements [mcp.Transport].
func (t *stdioTransport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements [mcp.Connection].
func (t *stdioTransport) SessionID() string { return "" }

// errClosedByUs is the error of a connection that we closed before it ended for another reason.
var errClosedByUs = fmt.Errorf("the connection was closed: %w", io.EOF)

// Close implements [mcp.Connection]. It does not wait.
func (t *stdioTransport) Close() error {
	t.writer.End(errClosedByUs)
	return nil
}

// Read implements [mcp.Connection]. The SDK calls it from one goroutine. Close interrupts it.
func (t *stdioTransport) Read(context.Context) (mcpjsonrpc.Message, error) {
	m, err := t.next()
	if err == nil {
		err = t.admit(m, t.writer.Ended())
	}
	if err != nil {
		t.writer.End(err)
		return nil, t.writer.Err()
	}
	return m, nil
}

// next returns the next message for the SDK.
func (t *stdioTransport) next() (mcpjsonrpc.Message, error) {
	for len(t.queued) == 0 {
		line, err := t.reader.Append(nil)
		if long, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
			return nil, messageTooLong(long.Limit)
		} else if err != nil {
			return nil, err
		}
		t.queued, _ = t.decode(line)
	}
	m := t.queued[0]
	t.queued = t.queued[1:]
	return m, nil
}

// Write implements [mcp.Connection].
func (t *stdioTransport) Write(ctx context.Context, m mcpjsonrpc.Message) error {
	line, err := mcpjsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.IsCall() {
		t.unanswered.Store(r.ID, nil)
	}
	if _, ok := m.(*mcpjsonrpc.Response); ok {
		defer t.answered()
	}
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.Method == "notifications/cancelled" {
		if written, ok := ctx.Value(cancellationKey{}).(func()); ok {
			defer written()
		}
	}
	err = t.writer.Write(ctx, line)
	if late, ok := errors.AsType[*lateError](err); ok { // those behind it wait in vain
		t.writer.End(&limitError{fmt.Sprintf("it has not read a call within %v", late.limit)})
	}
	return err
}

// cancellationKey is the key of the function that is called when notifications/cancelled was
// written with a context.
type cancellationKey struct{}

// withCancellation returns a context for a call. cancelled is closed once notifications/cancelled
// for the call was written, or cannot be. The SDK writes it after the call has returned. But a turn
// must not end before its calls, and later messages must come after the notification.
func withCancellation(ctx context.Context) (_ context.Context, cancelled <-chan struct{}) {
	written := make(chan struct{})
	return context.WithValue(ctx, cancellationKey{},
		sync.OnceFunc(func() { close(written) })), written
}

// cancellationTimeout is how long a server that reads slowly may delay the end of a cancelled call.
const cancellationTimeout = 100 * time.Millisecond
