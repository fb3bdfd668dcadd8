package mcpclient

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

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// stdioTransport is a connection over a process's streams, one message per line. Unlike the MCP
// SDK's, it survives lines that are not messages, servers that do not read, and requests sent
// before initialize; and it does not answer requests of modern servers, which may not send any.
type stdioTransport struct {
	log     *slog.Logger
	secrets *secret.Scrubber // to remove from logged output of the server; nil for none
	writer  *jsonrpc.Writer  // ends with the connection
	pending *pendingRequests
	open    *openRequests

	// Used by Read only.
	reader  *jsonrpc.Reader
	notices *rate.Limiter
	invalid int                  // lines that were not messages
	queued  []mcpjsonrpc.Message // received together with the last one
	parts   parts                // of a message that has several lines
	early   []mcpjsonrpc.Message // requests received before initialize was sent

	legacy atomic.Bool // initialize was sent, so requests are answered
}

const (
	// maxEarly is the most requests kept until initialize is sent.
	maxEarly = 64
	// maxInvalid is the most lines that are logged because they are not messages.
	maxInvalid = 5
)

// newStdioTransport returns a transport over in and out, which it closes with the connection.
func newStdioTransport(
	in io.ReadCloser, out io.WriteCloser, l limits, log *slog.Logger,
) *stdioTransport {
	writer := jsonrpc.NewWriter(out, func() {
		_ = out.Close()
		_ = in.Close()
	})
	return &stdioTransport{
		log: log, reader: jsonrpc.NewReader(in, l.MaxMessage), writer: writer,
		pending: newPendingRequests(l), open: newOpenRequests(), notices: perSecond(l.MaxNotices),
		parts: parts{max: l.MaxMessage},
	}
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

// err returns the first error that ended the connection, or nil while it lasts.
func (t *stdioTransport) err() error { return t.writer.Err() }

// Read implements [mcp.Connection]. The SDK calls it from one goroutine. Close interrupts it.
func (t *stdioTransport) Read(context.Context) (mcpjsonrpc.Message, error) {
	m, err := t.next()
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.IsCall() {
		err = t.pending.wait(t.writer.Ended())
		t.pending.add(r.ID)
	}
	if r, ok := m.(*mcpjsonrpc.Response); ok {
		t.open.remove(r.ID)
	}
	if err != nil {
		t.writer.End(err)
		return nil, t.err()
	}
	return m, nil
}

// next returns the next message for the SDK.
func (t *stdioTransport) next() (mcpjsonrpc.Message, error) {
	if t.legacy.Load() && len(t.early) > 0 {
		m := t.early[0]
		t.early = t.early[1:]
		return m, nil
	}
	for {
		for len(t.queued) > 0 {
			m := t.queued[0]
			t.queued = t.queued[1:]
			if !t.holdBack(m) {
				return m, nil
			}
		}
		line, err := t.reader.Append(nil)
		if err != nil {
			return nil, limitReadError(err)
		}
		t.queued = t.decode(line)
	}
}

// holdBack keeps back a request that is received before initialize is sent (which never happens for
// a modern server). The request is returned after the next message, at the latest after the answer
// to initialize.
func (t *stdioTransport) holdBack(m mcpjsonrpc.Message) bool {
	r, ok := m.(*mcpjsonrpc.Request)
	if !ok || !r.IsCall() || t.legacy.Load() {
		return false
	}
	if len(t.early) < maxEarly {
		t.early = append(t.early, m)
		t.log.Debug("MCP server sent a request before it was initialized, or one that its "+
			"protocol revision lacks", "method", r.Method)
	}
	return true
}

// Write implements [mcp.Connection].
func (t *stdioTransport) Write(ctx context.Context, m mcpjsonrpc.Message) error {
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.Method == "initialize" {
		t.legacy.Store(true)
	}
	line, err := mcpjsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*mcpjsonrpc.Request); ok {
		t.track(r)
	}
	if r, ok := m.(*mcpjsonrpc.Response); ok {
		defer t.pending.remove(r.ID)
	}
	defer cancellationWritten(ctx, m)
	return t.writer.Write(ctx, line)
}

// limitReadError turns the error for a line that is too long into a limitError.
func limitReadError(err error) error {
	if long, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
		return messageTooLong(long.Limit)
	}
	return err
}

// track records which requests are open.
func (t *stdioTransport) track(r *mcpjsonrpc.Request) {
	var cancelled struct{ RequestID any }
	switch {
	case r.IsCall():
		t.open.add(r.ID)
	case r.Method == "notifications/cancelled" && json.Unmarshal(r.Params, &cancelled) == nil:
		if id, err := mcpjsonrpc.MakeID(cancelled.RequestID); err == nil {
			t.open.remove(id)
		}
	}
}

// decode returns the messages that are complete with a line.
func (t *stdioTransport) decode(line []byte) (all []mcpjsonrpc.Message) {
	whole, dropped := t.parts.add(line)
	for _, line := range dropped {
		t.logInvalid(line)
		if m, _ := unreadableAnswer(line, t.open, nil); m != nil {
			all = append(all, m)
		}
	}
	for _, raw := range splitBatch(whole) {
		m, err := decodeMessage(raw, t.open)
		if err != nil {
			t.logInvalid(raw)
			continue
		}
		if r, ok := m.(*mcpjsonrpc.Request); ok && !r.IsCall() {
			waitFor(t.notices, t.writer.Ended())
		}
		all = append(all, m)
	}
	return all
}

// parts collects the lines of a message, because some servers print their JSON with line breaks. A
// line that is a message itself ends what was collected before, which then was something else.
type parts struct {
	max   int // bytes of a message
	lines [][]byte
	size  int
	depth int // of brackets that are open at the end of lines
}

// add returns the JSON that is complete with a line, or nil, and lines that are no part of any, as
// they were collected.
func (p *parts) add(line []byte) (whole []byte, dropped [][]byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, nil
	}
	depth, ok := brackets(line)
	begins := line[0] == '{' || line[0] == '['
	switch {
	case len(p.lines) == 0 && (!begins || !ok || depth < 0):
		return nil, [][]byte{line}
	case len(p.lines) > 0 && (bytes.Contains(line, []byte(`"jsonrpc"`)) && json.Valid(line) ||
		!ok || p.depth+depth < 0 || p.size+len(line) > p.max):
		dropped = [][]byte{bytes.Join(p.lines, []byte("\n"))}
		*p = parts{max: p.max}
		whole, more := p.add(line)
		return whole, append(dropped, more...)
	}
	p.lines, p.size = append(p.lines, line), p.size+len(line)
	if p.depth += depth; p.depth > 0 {
		return nil, nil
	}
	whole = bytes.Join(p.lines, []byte("\n"))
	*p = parts{max: p.max}
	if !json.Valid(whole) {
		return nil, [][]byte{whole}
	}
	return whole, nil
}

// brackets returns how many more brackets a line of JSON opens than it closes. ok is false if it
// ends within a string.
func brackets(line []byte) (depth int, ok bool) {
	inside := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
	}
	return depth, !inside
}

// logInvalid logs a line that is not a message. Some servers print greetings and traces to stdout.
func (t *stdioTransport) logInvalid(line []byte) {
	t.invalid++
	if t.invalid > maxInvalid {
		return
	}
	t.log.Warn("skipped a line on an MCP server's stdout that is not a message",
		"line", text.Truncate(t.secrets.Text(string(line)), 200))
	if t.invalid == maxInvalid {
		t.log.Warn("further such lines are skipped without a warning")
	}
}

// cancellation tracks when notifications/cancelled for a call has been written. The SDK writes it
// after the call has returned. But a turn must not end before its calls, and later messages must
// come after the notification.
type cancellation struct {
	once    sync.Once
	written chan struct{}
}

func newCancellation() *cancellation { return &cancellation{written: make(chan struct{})} }

// cancellationKey is the key of a call's cancellation in the context that its messages are written
// with.
type cancellationKey struct{}

// in returns the context for the call.
func (c *cancellation) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, cancellationKey{}, c)
}

// cancellationWritten records that m, written with ctx, was written or could not be.
func cancellationWritten(ctx context.Context, m mcpjsonrpc.Message) {
	r, ok := m.(*mcpjsonrpc.Request)
	if !ok || r.Method != "notifications/cancelled" {
		return
	}
	if c, ok := ctx.Value(cancellationKey{}).(*cancellation); ok {
		c.once.Do(func() { close(c.written) })
	}
}

// cancellationTimeout is how long a server that reads slowly may delay the end of a cancelled call.
const cancellationTimeout = 100 * time.Millisecond

// wait waits until the notification was written, ended is closed, or the timeout has passed.
func (c *cancellation) wait(ended <-chan struct{}) {
	select {
	case <-c.written:
	case <-ended:
	case <-time.After(cancellationTimeout):
	}
}
