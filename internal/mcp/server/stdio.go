package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wire "github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Serve serves one client that sends messages as lines on in and receives them on out, until in or
// ctx ends. It then gives running calls a moment to finish. A malformed line is answered with an
// error. Serve returns nil at the end of in. When ctx ends it closes in, if that is an io.Closer. A
// pending read from in or write to out may continue after Serve has returned.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l := &lines{out: wire.NewWriter(out, nil), log: s.log, maxMessage: s.options.MaxMessage,
		maxHeld: int64(s.limits.held)}
	defer l.close()
	slots := callSlots{make(chan struct{}, s.limits.calls),
		make(chan struct{}, s.limits.files), make(chan struct{}, s.limits.files)}
	eras := router{legacy: newTransport(l, s.limits.pending, slots),
		modern: newTransport(l, s.limits.pending, slots)}
	defer eras.legacy.waiting.Wait()
	defer eras.modern.waiting.Wait()
	legacyClient := &client{server: s}
	l.batches = &legacyClient.batches
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for _, era := range []struct {
		transport *transport
		client    *client
	}{{eras.legacy, legacyClient}, {eras.modern, &client{server: s}}} {
		session, err := s.forClient(era.client).Connect(ctx, era.transport, nil)
		if err != nil {
			return errors.Join(err, eras.legacy.Close(), eras.modern.Close())
		}
		sessions.Go(func() { _ = session.Wait() })
	}
	ended := make(chan error, 1)
	go func() { ended <- l.read(in, eras) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		if c, ok := in.(io.Closer); ok {
			err = c.Close()
		}
	}
	legacyClient.disconnected()
	s.drain(eras.legacy, eras.modern)
	l.close()
	return errors.Join(err, eras.legacy.Close(), eras.modern.Close(), l.writeError())
}

// drain waits for all requests to be answered, at most for the grace period.
func (s *Server) drain(transports ...*transport) {
	timeout := time.After(s.limits.grace)
	for _, t := range transports {
		select {
		case <-t.idle():
		case <-timeout:
			return
		}
	}
}

// router passes each message to the session of its era. A session of the SDK asks for input either
// with requests or in results, and both eras may be mixed on a connection, so each has its own
// session.
type router struct{ legacy, modern *transport }

// deliver passes on a message. It blocks until the session takes it.
func (r router) deliver(m incoming) {
	if m.modern || m.cancels != "" && r.modern.isPending(m.cancels) {
		r.modern.deliver(m)
	} else {
		r.legacy.deliver(m)
	}
}

var _ mcp.Transport = (*transport)(nil)

// transport connects one of the two sessions that share a connection. It is also the
// [mcp.Connection].
type transport struct {
	lines    *lines
	limit    int // of pending
	slots    callSlots
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
	waiting  sync.WaitGroup // for slots

	mu      sync.Mutex
	pending map[string]*pendingCall // by id: requests whose answer has not begun to be written
	active  int                     // requests whose answer has not been written, without lasting ones
	drained chan struct{}           // closed while active is 0
}

// callSlots limit how many tool calls run, by what they hold in memory. A call keeps its slots until
// its result is written, because the client may not read.
type callSlots [memories]chan struct{}

// of returns those that a tool call needs.
func (s callSlots) of(call incoming) []chan struct{} {
	if call.memory != holdsLittle { // a call that waits for a file slot is not running
		return []chan struct{}{s[call.memory], s[holdsLittle]}
	}
	return []chan struct{}{s[holdsLittle]}
}

// pendingCall is an unanswered request.
type pendingCall struct {
	size      int             // of the request, in bytes
	held      []chan struct{} // the slots that it has
	withdrawn chan struct{}   // closed if it is cancelled while it waits for them
	waiting   bool
	lasting   bool // a subscription, which ends with the connection
}

func newTransport(l *lines, limit int, slots callSlots) *transport {
	t := &transport{
		lines: l, limit: limit, slots: slots, incoming: make(chan jsonrpc.Message),
		closed: make(chan struct{}), pending: map[string]*pendingCall{},
		drained: make(chan struct{}),
	}
	close(t.drained)
	return t
}

// deliver passes a message to the session.
func (t *transport) deliver(m incoming) {
	switch {
	case m.isCall() && !t.admit(m):
		return
	case m.isToolCall():
		if call := t.wait(m.request.ID); call != nil {
			go func() {
				defer t.waiting.Done()
				t.deliverInTurn(m, call)
			}()
			return
		}
	case m.cancels != "" && t.withdraw(m.cancels):
		return
	}
	t.pass(m)
}

// pass passes a message to the session.
func (t *transport) pass(m incoming) {
	select {
	case t.incoming <- m.Message:
	case <-t.closed:
		if m.isCall() {
			t.answered(t.answering(m.request.ID))
		}
	}
}

// deliverInTurn passes a call to the session when there are slots for it.
func (t *transport) deliverInTurn(m incoming, call *pendingCall) {
	for _, slot := range t.slots.of(m) {
		select {
		case slot <- struct{}{}:
			call.held = append(call.held, slot)
		case <-call.withdrawn:
			t.lines.answers.Lock()
			defer t.lines.answers.Unlock()
			defer t.answered(t.answering(m.request.ID))
			t.lines.respond(m.request.ID.Raw(), jsonrpc.CodeInternalError, "the call was cancelled")
			return
		case <-t.closed:
			t.answered(t.answering(m.request.ID))
			return
		}
	}
	t.mu.Lock()
	call.waiting = false
	t.mu.Unlock()
	t.pass(m)
}

// wait registers that a request waits for slots, with a goroutine that calls waiting.Done. It
// returns nil if the transport is closed: close is called before waiting for these goroutines.
func (t *transport) wait(id jsonrpc.ID) *pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.closed:
		return nil
	default:
	}
	t.waiting.Add(1)
	call := t.pending[encodeID(id)]
	call.waiting = true
	return call
}

// withdraw ends the wait of the request with this id, as JSON, because it is cancelled. It reports
// whether it was waiting.
func (t *transport) withdraw(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	call := t.pending[id]
	if call == nil || !call.waiting {
		return false
	}
	call.waiting = false
	close(call.withdrawn)
	return true
}

// admit registers a request. It rejects one beyond the limits, and one whose id is in
// use, which the SDK would not answer.
func (t *transport) admit(m incoming) bool {
	id, key := m.request.ID, encodeID(m.request.ID)
	t.mu.Lock()
	full, duplicate := len(t.pending) >= t.limit, t.pending[key] != nil
	large := !full && !duplicate && !t.lines.hold(m.size)
	admitted := !full && !duplicate && !large
	if admitted {
		call := &pendingCall{size: m.size, withdrawn: make(chan struct{}),
			lasting: m.request.Method == "subscriptions/listen"}
		t.pending[key] = call
		if !call.lasting {
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
		t.lines.rejectCall(id, tooManyRequests(t.limit))
	case large:
		t.lines.rejectCall(id, fmt.Sprintf("the unanswered requests have more than %d bytes: "+
			"wait for their answers and send it again", t.lines.maxHeld))
	}
	return admitted
}

// answering registers that a request is being answered, and returns the request, for answered. As
// soon as the client reads the answer, it may reuse the id and send another request. The writer of
// an answer holds lines.answers, so that the limits exclude only one unread answer.
func (t *transport) answering(id jsonrpc.ID) *pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := encodeID(id)
	call := t.pending[key]
	if call != nil {
		t.lines.held.Add(int64(-call.size))
	}
	delete(t.pending, key)
	return call
}

// answered registers that an answer was written, and releases the slots of the request.
func (t *transport) answered(call *pendingCall) {
	if call != nil {
		for _, slot := range call.held {
			<-slot
		}
	}
	if call != nil && call.lasting {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active--; t.active == 0 {
		close(t.drained)
	}
}

// tooManyRequests returns the error message for a request beyond the limit.
func tooManyRequests(limit int) string {
	return fmt.Sprintf("too many unanswered requests (the limit is %d): wait for some", limit)
}

// encodeID returns an id as JSON.
func encodeID(id jsonrpc.ID) string {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return "" // cannot happen: ids are strings and integers
	}
	return string(key)
}

// isPending reports whether the request with this id, as JSON, is unanswered.
func (t *transport) isPending(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending[id] != nil
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
		defer t.answered(t.answering(response.ID))
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
	maxHeld    int64
	batches    *atomic.Bool // whether the client may send several messages in an array
	answers    sync.Mutex   // held while an answer to a request is written
	held       atomic.Int64 // bytes of the pending requests
}

// hold adds a request of size bytes to the unanswered ones. It returns false if these are too long
// together, but always accepts the first.
func (l *lines) hold(size int) bool {
	if held := l.held.Add(int64(size)); held > l.maxHeld && held > int64(size) {
		l.held.Add(int64(-size))
		return false
	}
	return true
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

// read passes each message to the router until in ends.
func (l *lines) read(in io.Reader, to router) error {
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
func (l *lines) handle(line []byte, to router) {
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
func (l *lines) handleMessage(line []byte, to router) {
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

// rejectCall answers a request beyond the limits of unanswered ones.
func (l *lines) rejectCall(id jsonrpc.ID, reason string) {
	l.respond(id.Raw(), jsonrpc.CodeInternalError, reason)
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
