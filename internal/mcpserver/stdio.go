package mcpserver

import (
	"bytes"
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

	wire "github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// Serve serves one client that writes lines to in and reads them from out, until in ends or ctx does. Calls that were
// read before are answered, within the grace. A line that is no message gets an error and ends nothing (M12). It
// returns nil at the end of in or of ctx, which closes in if that can be closed. What may go on after it is a read from an in
// that does not end, and a write to an out that nobody reads.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l := newLines(out, s.log, s.options.MaxMessage)
	defer l.close()
	old, now := newPort(l, s.options.MaxPending), newPort(l, s.options.MaxPending)
	asked := &client{server: s, ask: atOnce}
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for _, era := range []struct {
		port   *port
		client *client
	}{{old, asked}, {now, &client{server: s}}} {
		session, err := s.forClient(era.client).Connect(ctx, era.port, nil)
		if err != nil {
			return errors.Join(err, old.Close(), now.Close())
		}
		sessions.Go(func() { _ = session.Wait() })
	}
	ended := make(chan error, 1)
	go func() { ended <- l.read(in, router{old: old, now: now}) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		if c, ok := in.(io.Closer); ok {
			err = c.Close()
		}
	}
	asked.gone()
	s.drain(old, now)
	l.close()
	return errors.Join(err, old.Close(), now.Close(), l.failure())
}

// drain waits until all calls are answered, at most for the grace.
func (s *Server) drain(ports ...*port) {
	late := time.NewTimer(s.options.EndGrace)
	defer late.Stop()
	for _, p := range ports {
		select {
		case <-p.idle():
		case <-late.C:
			return
		}
	}
}

var _ mcp.Transport = (*port)(nil)

// router gives each message of one connection to the session of its era. The SDK decides by the session whether it
// asks by a request or within a result, and the two eras may be mixed on a connection: a session for each keeps
// requests from those that must not be sent any (M7).
type router struct{ old, now *port }

// deliver hands a message on. It blocks while the session does not take it.
func (r router) deliver(m jsonrpc.Message) {
	to := r.old
	if request, ok := m.(*jsonrpc.Request); ok && r.isNow(request) {
		to = r.now
	}
	to.deliver(m)
}

// isNow reports whether a request belongs to the modern era: the revision that it names does. A cancellation belongs where
// its request went.
func (r router) isNow(request *jsonrpc.Request) bool {
	var params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		RequestID json.RawMessage            `json:"requestId"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return false
	}
	var revision string
	if named := params.Meta[mcp.MetaKeyProtocolVersion]; named != nil && (json.Unmarshal(named, &revision) != nil || revision >= modern) {
		return true
	}
	return request.Method == "notifications/cancelled" && r.now.has(params.RequestID)
}

// port is a session's side of a connection that it shares. It is its own transport.
type port struct {
	lines    *lines
	limit    int // of busy
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	pending map[string]bool // requests that have no answer, by id
	busy    int             // requests that have none, or one that is not read
	idling  chan struct{}   // closed while there are none
}

func newPort(l *lines, limit int) *port {
	p := &port{
		lines: l, limit: limit, incoming: make(chan jsonrpc.Message), closed: make(chan struct{}),
		pending: map[string]bool{}, idling: make(chan struct{}),
	}
	close(p.idling)
	return p
}

// deliver gives the session a message.
func (p *port) deliver(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	counted := ok && request.IsCall()
	if counted && !p.admit(request.ID) {
		return
	}
	select {
	case p.incoming <- m:
	case <-p.closed:
		if counted {
			p.answering(request.ID)
			p.answered()
		}
	}
}

// admit notes a request that is to be answered. One that is too many is refused, and one whose id is that of another, which
// the SDK would leave without an answer.
func (p *port) admit(id jsonrpc.ID) bool {
	key := keyOf(id)
	p.mu.Lock()
	full, twice := p.busy >= p.limit, p.pending[key]
	if !full && !twice {
		p.pending[key] = true
		if p.busy++; p.busy == 1 {
			p.idling = make(chan struct{})
		}
	}
	p.mu.Unlock()
	switch {
	case twice: // an answer with the id would be taken for that of the other
		p.lines.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the id %s is in use: the request that has it is not answered yet", shorten(key)))
	case full:
		p.lines.tooMany(id, p.limit)
	}
	return !full && !twice
}

// answering notes that a request has its answer. The client may use the id again as soon as it reads that.
func (p *port) answering(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, keyOf(id))
}

// answered notes that the client has read an answer.
func (p *port) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 {
		close(p.idling)
	}
}

// keyOf is an id as JSON.
func keyOf(id jsonrpc.ID) string {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return "" // ids are strings and integers
	}
	return string(key)
}

// has reports whether a request with this id, as JSON, is unanswered.
func (p *port) has(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[string(id)]
}

// idle is closed when all requests are answered, and the answers read.
func (p *port) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idling
}

// Connect implements [mcp.Transport].
func (p *port) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements [mcp.Connection].
func (p *port) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (p *port) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (p *port) Write(_ context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		p.answering(response.ID)
		defer p.answered()
	}
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.lines.write(message)
}

// Close implements [mcp.Connection].
func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// lines are the two streams of a stdio client, a message a line. The SDK's own transport ends the connection at the first
// line that is no message.
type lines struct {
	out *wire.Writer // one that blocks is left behind by close
	log *slog.Logger
	max int
}

func newLines(out io.Writer, log *slog.Logger, max int) *lines {
	return &lines{out: wire.NewWriter(out, nil), log: log, max: max}
}

// write writes one message.
func (l *lines) write(message []byte) error { return l.out.Write(context.Background(), message) }

// errClosed is why nothing is written after close.
var errClosed = fmt.Errorf("the connection was closed: %w", io.ErrClosedPipe)

// close refuses what is written from now on, and waits for nothing.
func (l *lines) close() { l.out.End(errClosed) }

// failure is the write that failed, nil if none did.
func (l *lines) failure() error {
	if err := l.out.Err(); err != errClosed {
		return err
	}
	return nil
}

// read hands each message on, until in ends.
func (l *lines) read(in io.Reader, to router) error {
	lines := wire.NewReader(in, l.max)
	for {
		line, err := lines.Append(nil)
		long, refused := errors.AsType[*wire.TooLongError](err)
		switch {
		case refused:
			l.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than the limit of %d bytes", long.Limit))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			l.accept(line, to)
		}
	}
}

// accept hands a line on if it is a message, and answers it if it is not.
func (l *lines) accept(line []byte, to router) {
	if !json.Valid(line) {
		l.refuse(jsonrpc.CodeParseError, "the line is not JSON")
		return
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		l.refuse(jsonrpc.CodeInvalidRequest, "the line is not one JSON-RPC 2.0 message")
		return
	}
	if request, ok := m.(*jsonrpc.Request); ok && request.IsCall() && !kept(request.ID, line) {
		l.refuse(jsonrpc.CodeInvalidRequest, "the id is not kept exactly: give a string, or an integer of at most 2^53-1")
		return
	}
	to.deliver(m)
}

// kept reports whether an id is the one in its line: the SDK makes integers of all numbers, by way of floating point.
func kept(id jsonrpc.ID, line []byte) bool {
	if _, ok := id.Raw().(string); ok {
		return true
	}
	var written struct {
		ID json.RawMessage `json:"id"`
	}
	return json.Unmarshal(line, &written) == nil && string(written.ID) == keyOf(id)
}

// refuse answers what is no message.
func (l *lines) refuse(code int, why string) {
	l.log.Warn("a line from the client is refused", "reason", why)
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		err = l.write(message)
	}
	if err != nil {
		l.log.Debug("the refusal was not sent", "error", err)
	}
}

// tooMany refuses a request because of those that are not answered yet.
func (l *lines) tooMany(id jsonrpc.ID, limit int) {
	message, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%d requests are not answered yet, which is the limit: wait for some", limit),
	}})
	if err == nil {
		err = l.write(message)
	}
	if err != nil {
		l.log.Debug("the refusal was not sent", "error", err)
	}
}
