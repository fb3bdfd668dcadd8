package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wire "github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Serve serves one client that sends messages as lines on in and receives them on out, until in or
// ctx ends. It then gives running calls a moment to finish. A malformed line is answered with an
// error. Serve returns nil at the end of in. When ctx ends it closes in, if that is an io.Closer. A
// pending read from in or write to out may continue after Serve has returned.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := s.newClient(newCallSlots(s.options.limits), false)
	t := &transport{
		out: wire.NewWriter(out, nil), log: s.log, answers: &c.slots.answers,
		incoming: make(chan jsonrpc.Message), closed: make(chan struct{}),
		open: map[jsonrpc.ID]bool{},
	}
	session, err := c.sdk.Connect(ctx, t, nil)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	defer func() { _ = session.Wait() }()
	ended := make(chan error, 1)
	go func() { ended <- t.read(in, s.options.MaxMessage) }()
	select {
	case err = <-ended:
	case <-t.closed: // the client reads no more
		err = wire.CloseStream(in)
	case <-ctx.Done():
		err = wire.CloseStream(in)
	}
	if f := c.follower.Load(); f != nil {
		f.disconnect() // it will not answer roots/list
	}
	select {
	case <-t.allAnswered():
	case <-time.After(s.options.limits.grace):
	}
	t.out.End(errClosed)
	if failed := t.out.Err(); failed != errClosed {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, t.Close())
}

var errClosed = fmt.Errorf("the connection was closed: %w", io.ErrClosedPipe)

// transport connects a session with a client over lines. Unlike the SDK's, it survives malformed
// lines. It is also the [mcp.Connection].
type transport struct {
	out      *wire.Writer
	log      *slog.Logger
	answers  *sync.Mutex // held while an answer to a request is written
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // the requests without an answer, but for subscriptions, which last
	answered chan struct{}       // closed when there are none; nil before allAnswered
}

// Connect implements [mcp.Transport].
func (t *transport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements [mcp.Connection].
func (t *transport) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (t *transport) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. It leaves out the answer to a request that the client has
// cancelled.
func (t *transport) Write(_ context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		t.answers.Lock()
		defer t.answers.Unlock()
		defer t.remove(response.ID)
		if errors.Is(response.Error, context.Canceled) {
			return nil
		}
		response.Error = withCode(context.Background(), response.Error)
	}
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return t.out.Write(context.Background(), message)
}

// Close implements [mcp.Connection].
func (t *transport) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// read passes each message to the session until in ends.
func (t *transport) read(in io.Reader, maxMessage int) error {
	reader := wire.NewReader(in, maxMessage)
	for {
		line, err := reader.Append(nil)
		tooLong, ok := errors.AsType[*wire.TooLongError](err)
		switch {
		case ok:
			t.refuse(wire.ID{}, jsonrpc.CodeInvalidRequest, fmt.Sprintf(
				"the message is longer than the limit of %d bytes", tooLong.Limit))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			t.handle(line)
		}
	}
}

// handle passes on a message, or answers a malformed line with an error, which has the id of a
// request that is not valid.
func (t *transport) handle(line []byte) {
	m, err := jsonrpc.DecodeMessage(line)
	switch {
	case err == nil:
		t.deliver(m)
	case !json.Valid(line):
		t.refuse(wire.ID{}, jsonrpc.CodeParseError, "the line is not valid JSON")
	default:
		t.refuse(wire.RequestID(line), jsonrpc.CodeInvalidRequest,
			"the line is not a JSON-RPC 2.0 message")
	}
}

// deliver passes a message to the session.
func (t *transport) deliver(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	if ok && r.IsCall() && r.Method != "subscriptions/listen" {
		t.mu.Lock()
		t.open[r.ID] = true
		t.mu.Unlock()
	}
	select {
	case t.incoming <- m:
	case <-t.closed:
	}
}

// allAnswered returns a channel that is closed once all requests are answered. It is called once.
func (t *transport) allAnswered() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	answered := make(chan struct{})
	if t.answered = answered; len(t.open) == 0 {
		t.answered = nil
		close(answered)
	}
	return answered
}

// remove records that a request is answered.
func (t *transport) remove(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, id)
	if len(t.open) == 0 && t.answered != nil {
		close(t.answered)
		t.answered = nil
	}
}

// refuse answers a malformed line.
func (t *transport) refuse(id wire.ID, code int, reason string) {
	t.log.Warn("rejected a line from the client", "reason", reason)
	answer := strictjson.Encode(map[string]any{"jsonrpc": "2.0",
		"id":    json.RawMessage(cmp.Or(id.String(), "null")),
		"error": map[string]any{"code": code, "message": reason}})
	if err := t.out.Write(context.Background(), answer); err != nil {
		t.log.Debug("cannot send an error response", "error", err)
	}
}
