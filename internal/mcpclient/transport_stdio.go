package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// lines is a connection over a process's streams, one message a line. Unlike the SDK's it outlives a line that is
// no message, a peer that does not read, and a server that asks before its time; and it answers no requests of a
// modern server, which may send none.
type lines struct {
	log     *slog.Logger
	reader  *jsonrpc.Reader // Read's alone
	writer  *jsonrpc.Writer // its end is that of the connection
	asked   *questions
	notices allowance // Read's alone
	strange int       // lines that were no messages; Read's alone

	legacy atomic.Bool          // initialize was sent: from then on requests are answered
	held   []mcpjsonrpc.Message // requests that came before; Read's alone
}

const (
	// maxHeld is the most requests that wait for initialize.
	maxHeld = 64
	// maxStrange is how many lines that are no messages are logged one by one.
	maxStrange = 5
)

// newLines speaks over in and out, which it closes with the connection.
func newLines(in io.ReadCloser, out io.WriteCloser, o Options, log *slog.Logger) *lines {
	writer := jsonrpc.NewWriter(out, func() {
		_ = out.Close()
		_ = in.Close()
	})
	return &lines{
		log: log, reader: jsonrpc.NewReader(in, o.MaxMessage), writer: writer, asked: newQuestions(o),
		notices: allowance{perSecond: o.MaxNotices},
	}
}

// Connect implements [mcp.Transport].
func (l *lines) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID implements [mcp.Connection].
func (l *lines) SessionID() string { return "" }

// Close implements [mcp.Connection]. It does not wait.
func (l *lines) Close() error {
	l.writer.End(errClosedHere)
	return nil
}

// errClosedHere is the end of a connection that nobody else ended.
var errClosedHere = fmt.Errorf("the connection was closed: %w", io.EOF)

// why is what ended the connection first, nil while it lives.
func (l *lines) why() error { return l.writer.Err() }

// Read implements [mcp.Connection]. The SDK reads on one goroutine. Close ends a read.
func (l *lines) Read(context.Context) (mcpjsonrpc.Message, error) {
	m, err := l.next()
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.IsCall() {
		err = l.asked.room(l.writer.Ended())
		l.asked.add(r.ID)
	}
	if err != nil {
		l.writer.End(err)
		return nil, l.why()
	}
	return m, nil
}

// next is the next message that is for the SDK.
func (l *lines) next() (mcpjsonrpc.Message, error) {
	if l.legacy.Load() && len(l.held) > 0 {
		m := l.held[0]
		l.held = l.held[1:]
		return m, nil
	}
	for {
		line, err := l.reader.Append(nil)
		if err != nil {
			return nil, tooLong(err)
		}
		if m := l.message(line); m != nil && !l.early(m) {
			return m, nil
		}
	}
}

// early keeps back a request that comes before initialize was sent, which in a modern server it never is. It is
// returned behind the message that comes next, which is the answer to initialize at the latest.
func (l *lines) early(m mcpjsonrpc.Message) bool {
	r, ok := m.(*mcpjsonrpc.Request)
	if !ok || !r.IsCall() || l.legacy.Load() {
		return false
	}
	if len(l.held) < maxHeld {
		l.held = append(l.held, m)
		l.log.Debug("an MCP server sent a request before it was initialized, or one that its revision does not have", "method", r.Method)
	}
	return true
}

// Write implements [mcp.Connection].
func (l *lines) Write(ctx context.Context, m mcpjsonrpc.Message) error {
	if r, ok := m.(*mcpjsonrpc.Request); ok && r.Method == "initialize" {
		l.legacy.Store(true)
	}
	line, err := mcpjsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*mcpjsonrpc.Response); ok {
		defer l.asked.taken(r.ID)
	}
	defer noteWithdrawal(ctx, m)
	return l.writer.Write(ctx, line)
}

// tooLong is err, or what a line means that was longer than messages are.
func tooLong(err error) error {
	if long, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
		return &MessageError{Limit: long.Limit}
	}
	return err
}

// message decodes a line, nil if it is none or not for us.
func (l *lines) message(line []byte) mcpjsonrpc.Message {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	m, err := mcpjsonrpc.DecodeMessage(mcproots.Mend(line))
	if err != nil {
		l.logStrange(line)
		return nil
	}
	if r, ok := m.(*mcpjsonrpc.Request); ok && !r.IsCall() {
		l.notices.take(l.writer.Ended())
	}
	return m
}

// logStrange notes a line that is no message. Servers print greetings and traces where they should not.
func (l *lines) logStrange(line []byte) {
	const most = 200
	l.strange++
	switch {
	case l.strange > maxStrange:
		return
	case len(line) > most:
		line = line[:most]
	}
	l.log.Warn("an MCP server wrote a line to its output that is no message; it was skipped", "line", string(bytes.ToValidUTF8(line, []byte("?"))))
	if l.strange == maxStrange {
		l.log.Warn("further lines of this kind are skipped without notice")
	}
}

// withdrawal is the notice to a process that a call was given up. The SDK sends it after the call has returned; a turn is
// over only when its calls are, and what the server is told next must not come before it.
type withdrawal struct {
	once sync.Once
	sent chan struct{} // closed when the notice was written, or could not be
}

func newWithdrawal() *withdrawal { return &withdrawal{sent: make(chan struct{})} }

// withdrawalKey is the key of a call's withdrawal in the context that its messages are written with.
type withdrawalKey struct{}

func (w *withdrawal) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, withdrawalKey{}, w)
}

// noteWithdrawal notes that m was written.
func noteWithdrawal(ctx context.Context, m mcpjsonrpc.Message) {
	r, ok := m.(*mcpjsonrpc.Request)
	if !ok || r.Method != "notifications/cancelled" {
		return
	}
	if w, ok := ctx.Value(withdrawalKey{}).(*withdrawal); ok {
		w.once.Do(func() { close(w.sent) })
	}
}

// withdrawalTimeout is how long a server that reads slowly is waited for.
const withdrawalTimeout = 100 * time.Millisecond

// wait waits until the notice was written, ended is closed, or it has taken too long.
func (w *withdrawal) wait(ended <-chan struct{}) {
	timer := time.NewTimer(withdrawalTimeout)
	defer timer.Stop()
	select {
	case <-w.sent:
	case <-ended:
	case <-timer.C:
	}
}
