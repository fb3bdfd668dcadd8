package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// childConnection sends a child our requests and notifications. The child's messages go to its
// router.
type childConnection struct {
	process *process.Process
	rpc     *jsonrpc.Conn
	log     *slog.Logger
	limits  limits
	secrets *secret.Scrubber
	stop    context.CancelCauseFunc // ends the child
	// explain returns the error for the client of a request with the given params.
	explain func(ctx context.Context, params backend.Raw, err error) error

	stray      atomic.Int64           // lines of its stdout that are not messages
	firstStray atomic.Pointer[string] // the first of them

	notifying sync.Mutex // held by notify
	unread    int        // bytes of notifications sent while the output to the child was full
}

// request sends a request.
func (c *childConnection) request(
	ctx context.Context, method string, params backend.Raw,
) backend.Work {
	return c.requestFunc(ctx, method, params, nil)
}

// requestFunc sends a request and returns its result unchanged, or its error explained. onResponse
// may be nil; see [jsonrpc.Conn.CallFunc].
func (c *childConnection) requestFunc(
	ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error),
) backend.Work {
	work := c.rpc.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		return result, c.explain(ctx, params, err)
	}
}

// requestStored sends a request about a session that may not be open. It returns no error if the
// session does not exist, or if the child has ended or does not answer in time.
func (c *childConnection) requestStored(
	ctx context.Context, method string, id, params backend.Raw,
) (backend.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	result, err := c.request(ctx, method, withSessionID(params, id))()
	_, ended := errors.AsType[*endedError](err)
	rejection := responseError(err)
	switch {
	case ended, rejection != nil && rejection.Code == protocol.CodeNotFound:
		return nil, nil
	case errors.Is(err, errNoAnswer):
		c.log.Warn("the agent did not answer in time", "method", method,
			"limit", c.limits.EndTimeout)
		return nil, nil
	}
	return result, err
}

// notify sends a notification without blocking, in the order of the calls. No notification is
// dropped silently: a child that leaves too many unread is killed.
func (c *childConnection) notify(method string, params backend.Raw) {
	c.notifying.Lock()
	defer c.notifying.Unlock()
	err := c.rpc.TryNotify(method, params)
	if errors.Is(err, jsonrpc.ErrQueueFull) {
		if c.unread += len(method) + len(params); c.unread > c.limits.MaxHeldBytes {
			c.stop(errNotReading)
			return
		}
		err = c.rpc.ForceNotify(method, params)
	} else {
		c.unread = 0
	}
	if err != nil {
		c.log.Warn("cannot send the agent a notification", "method", method, "error", err)
	}
}

// cancel sends session/cancel, even if the output to the child is full.
func (c *childConnection) cancel(params backend.Raw) {
	if err := c.rpc.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.log.Debug("cannot send the agent session/cancel", "error", err)
	}
}

// maxStray limits how many lines of a child that are no messages are logged with their text.
const maxStray = 5

// noteStray logs a line that is not a message.
func (c *childConnection) noteStray(line []byte) {
	said := text.Line(text.Plain(c.secrets.Text(string(line))), maxTitle)
	c.firstStray.CompareAndSwap(nil, &said)
	if c.stray.Add(1) <= maxStray {
		c.log.Warn("the agent wrote a line to stdout that is not a message", "line", said)
	}
}

// traced returns the function that passes the messages of the process to trace, or nil if trace is
// nil.
func (c *childConnection) traced(trace func(process string, sent bool, line []byte)) jsonrpc.Tap {
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(c.process.Name(), " ", "_"), c.process.PID())
	return func(sent bool, line []byte) {
		if clean := c.secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, sent, line)
	}
}

// childInput is a process's stdin. When writing fails, it ends the process and discards the output,
// so that the connection continues until everything that the process wrote has been read.
type childInput struct{ process *process.Process }

// Write fails only if the process cannot be ended.
func (i childInput) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i childInput) Close() error { return i.process.Stdin().Close() }
