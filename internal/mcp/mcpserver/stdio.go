package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
	wire "github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Serve serves one client that sends messages as lines on in and receives them on out, until in or
// ctx ends. It then gives running calls a moment to finish. A malformed line is answered with an
// error. Serve returns nil at the end of in. When ctx ends it closes in, if that is an io.Closer. A
// pending read from in or write to out may continue after Serve has returned.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &client{server: s, slots: newCallSlots(s.limits)}
	l := &lines{out: wire.NewWriter(out, nil), log: s.log, maxMessage: s.options.MaxMessage,
		batches: &c.batches, answers: &c.slots.answers}
	defer l.close()
	t := newTransport(l, s.limits.pending)
	session, err := s.forClient(c).Connect(ctx, t, nil)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	defer func() { _ = session.Wait() }()
	ended := make(chan error, 1)
	go func() { ended <- l.read(in, t) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		if c, ok := in.(io.Closer); ok {
			err = c.Close()
		}
	}
	c.disconnected()
	select { // until all requests are answered
	case <-t.idle():
	case <-time.After(s.limits.grace):
	}
	l.close()
	return errors.Join(err, t.Close(), l.writeError())
}

var _ mcp.Transport = (*transport)(nil)

// transport connects a session with a client. It is also the [mcp.Connection].
type transport struct {
	lines    *lines
	limit    int // of pending
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
	era      era // of the connection; used by the goroutine that reads

	mu      sync.Mutex
	pending map[string]*pendingRequest // by id
	active  int                        // requests that are not answered, without lasting ones
	drained chan struct{}              // closed while active is 0
}

// era is the era of the protocol that a connection keeps to.
type era int

const (
	undecided era = iota
	legacy        // initialize was sent
	modern        // a request has named a modern revision that is served
)

// pendingRequest is a request whose answer has not begun to be written.
type pendingRequest struct {
	method    string
	cancelled bool // nobody expects an answer
}

// lasts reports whether the request is a subscription, which ends with the connection.
func (r *pendingRequest) lasts() bool { return r.method == "subscriptions/listen" }

func newTransport(l *lines, limit int) *transport {
	t := &transport{
		lines: l, limit: limit, incoming: make(chan jsonrpc.Message),
		closed: make(chan struct{}), pending: map[string]*pendingRequest{},
		drained: make(chan struct{}),
	}
	close(t.drained)
	return t
}

// deliver passes a message to the session.
func (t *transport) deliver(m incoming) {
	if m.isCall() && !t.admit(m) {
		return
	}
	if m.request != nil && m.request.Method == "notifications/cancelled" {
		t.cancel(m.request.Params)
	}
	select {
	case t.incoming <- m.Message:
	case <-t.closed:
		if m.isCall() {
			t.answered(t.answering(m.request.ID))
		}
	}
}

// admit registers a request. It rejects one of the other era, one beyond the limit, and one whose
// id is in use, which the SDK would not answer.
func (t *transport) admit(m incoming) bool {
	if !t.decide(m) {
		t.lines.respond(m.request.ID.Raw(), jsonrpc.CodeInvalidRequest, "this connection uses the "+
			"revision of its first request: start the server again for another")
		return false
	}
	id, key := m.request.ID, encodeID(m.request.ID)
	t.mu.Lock()
	_, duplicate := t.pending[key]
	full := len(t.pending) >= t.limit
	if !full && !duplicate {
		r := &pendingRequest{method: m.request.Method}
		t.pending[key] = r
		if !r.lasts() {
			if t.active++; t.active == 1 {
				t.drained = make(chan struct{})
			}
		}
	}
	t.mu.Unlock()
	switch {
	case duplicate: // an answer with this id would be taken for that of the other request
		t.lines.reject(jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the id %s is in use by an unanswered request",
				text.Truncate(key, maxQuoted)))
	case full:
		t.lines.respond(id.Raw(), jsonrpc.CodeInternalError, fmt.Sprintf(
			"too many unanswered requests (the limit is %d): wait for some", t.limit))
	}
	return !full && !duplicate
}

// decide decides the era of the connection, or reports whether a request belongs to it. A session
// of the SDK asks for input either with requests or in results. A request with a modern revision
// that is not served decides nothing: the client may continue with another.
func (t *transport) decide(m incoming) bool {
	of := undecided
	switch {
	case m.request.Method == "initialize":
		of = legacy
	case m.modern != "" && slices.Contains(mcp.SupportedProtocolVersions(), m.modern):
		of = modern
	}
	if t.era == undecided {
		t.era = of
	}
	return of == undecided || of == t.era
}

// cancel registers that the client expects no answer to a request. It cannot cancel initialize.
func (t *transport) cancel(params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.pending[string(strictjson.Find(params, "requestId"))]; r != nil &&
		r.method != "initialize" {
		r.cancelled = true
	}
}

// answering registers that a request is being answered: as soon as the client reads the answer, it
// may reuse the id and send another request.
func (t *transport) answering(id jsonrpc.ID) *pendingRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := encodeID(id)
	r := t.pending[key]
	delete(t.pending, key)
	return r
}

// answered registers that an answer was written, or is not wanted.
func (t *transport) answered(r *pendingRequest) {
	if r == nil || r.lasts() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active--; t.active == 0 {
		close(t.drained)
	}
}

// encodeID returns an id as JSON.
func encodeID(id jsonrpc.ID) string {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return "" // cannot happen: ids are strings and integers
	}
	return string(key)
}

// idle returns a channel that is closed once all requests are answered.
func (t *transport) idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drained
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

// Write implements [mcp.Connection].
func (t *transport) Write(_ context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok && response.Error != nil {
		response.Error = withCode(context.Background(), response.Error)
	}
	message, err := jsonrpc.EncodeMessage(m)
	if response, ok := m.(*jsonrpc.Response); ok {
		t.lines.answers.Lock()
		defer t.lines.answers.Unlock()
		r := t.answering(response.ID)
		defer t.answered(r)
		if r != nil && r.cancelled {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return t.lines.write(message)
}

// Close implements [mcp.Connection].
func (t *transport) Close() error {
	t.once.Do(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(t.closed)
	})
	return nil
}

// lines reads and writes messages as lines. Unlike the SDK's stdio transport, it survives malformed
// lines.
type lines struct {
	out        *wire.Writer
	log        *slog.Logger
	maxMessage int
	batches    *atomic.Bool // whether the client may send several messages in an array
	answers    *sync.Mutex  // held while an answer to a request is written
}

func (l *lines) write(message []byte) error { return l.out.Write(context.Background(), message) }

var errClosed = fmt.Errorf("the connection was closed: %w", io.ErrClosedPipe)

// close makes further writes fail. It does not wait for a pending one.
func (l *lines) close() { l.out.End(errClosed) }

// writeError returns the error of a failed write, nil if there was none.
func (l *lines) writeError() error {
	if err := l.out.Err(); err != errClosed {
		return err
	}
	return nil
}

// read passes each message to the transport until in ends.
func (l *lines) read(in io.Reader, to *transport) error {
	reader := wire.NewReader(in, l.maxMessage)
	for {
		line, err := reader.Append(nil)
		tooLong, ok := errors.AsType[*wire.TooLongError](err)
		switch {
		case ok:
			l.reject(jsonrpc.CodeInvalidRequest, fmt.Sprintf(
				"the message is longer than the limit of %d bytes", tooLong.Limit))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			l.handle(line, to)
		}
	}
}

// handle passes on a message, or answers a malformed line with an error.
func (l *lines) handle(line []byte, to *transport) {
	if code, problem := checkJSON(line); problem != "" {
		l.refuse(line, code, "the line "+problem)
		return
	}
	var batch []json.RawMessage
	if l.batches.Load() && json.Unmarshal(line, &batch) == nil && len(batch) > 0 {
		for _, message := range batch {
			l.handleMessage(message, to)
		}
		return
	}
	l.handleMessage(line, to)
}

// handleMessage passes on a message, or answers a malformed one with an error. The messages of an
// array are answered one by one, each as soon as it can be.
func (l *lines) handleMessage(line []byte, to *transport) {
	m, err := decodeMessage(line)
	switch {
	case err != nil:
		l.refuse(line, jsonrpc.CodeInvalidRequest, "the line is not a JSON-RPC 2.0 message")
	case m.isCall() && !isExact(m.request.ID, line):
		l.refuse(line, jsonrpc.CodeInvalidRequest,
			"the id cannot be represented exactly: use a string, or an integer of at most 2^53-1")
	case m.isCall() && m.problem != "":
		l.respond(m.request.ID.Raw(), jsonrpc.CodeInvalidParams, m.problem)
	default:
		to.deliver(m)
	}
}

// isExact reports whether id is exactly the id in line. It may not be, because the SDK converts
// numbers to integers through floating point.
func isExact(id jsonrpc.ID, line []byte) bool {
	_, isText := id.Raw().(string)
	return isText || string(strictjson.Find(line, "id")) == encodeID(id)
}

// reject answers a malformed line.
func (l *lines) reject(code int, reason string) {
	l.log.Warn("rejected a line from the client", "reason", reason)
	l.respond(nil, code, reason)
}

// refuse answers a line that is no valid message, with its id if it is a request that has one.
func (l *lines) refuse(line []byte, code int, reason string) {
	id := wire.RequestID(line)
	if code == jsonrpc.CodeParseError || id.IsZero() {
		l.reject(code, reason)
		return
	}
	l.log.Warn("rejected a line from the client", "reason", reason)
	l.respond(json.RawMessage(id.String()), code, reason)
}

// respond writes an error response.
func (l *lines) respond(id any, code int, reason string) {
	if err := l.write(errorResponse(id, code, reason)); err != nil {
		l.log.Debug("cannot send an error response", "error", err)
	}
}

// errorResponse returns the error response to a request.
func errorResponse(id any, code int, reason string) []byte {
	return strictjson.Encode(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": reason}})
}
