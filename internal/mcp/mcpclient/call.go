package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// ProgressFunc receives the latest progress of a call. ctx ends with the call.
type ProgressFunc func(ctx context.Context, p *mcp.ProgressNotificationParams)

// Call calls a tool, unless its server has changed it since t was returned. arguments is a JSON
// object, empty for none. progress is called from time to time, but never concurrently and not
// after Call has returned. When ctx ends, the server is told to cancel the call. The failure of a
// tool is a result, not an error.
func (s *Set) Call(ctx context.Context, t Tool, arguments json.RawMessage, progress ProgressFunc) (
	*mcp.CallToolResult, error) {
	for n := 1; ; n++ {
		now, c, err := s.findTool(ctx, t.Name)
		switch {
		case err != nil:
			return nil, err
		case now.Identity != t.Identity:
			return nil, fmt.Errorf("%s was not called, because its server has changed it in the "+
				"meantime; call it again to be asked for permission", t.Name)
		}
		result, err := c.callTool(ctx, t, arguments, progress)
		if err == nil || n == maxConnections || ctx.Err() != nil || !t.mayRepeat(err) {
			return result, err
		}
	}
}

// mayRepeat reports whether a call that failed can be sent again: the server has not handled it, or
// says of the tool that another call changes nothing.
func (t Tool) mayRepeat(err error) bool {
	switch transportErrorOf(err).fault {
	case lostSession, unreachable:
		return true
	case lostAnswer:
		return t.Hints.ReadOnly || t.Hints.Idempotent
	}
	return errors.Is(err, errEndedBefore)
}

// callTool calls a tool and reports its progress.
func (c *connection) callTool(
	ctx context.Context, t Tool, arguments json.RawMessage, progress ProgressFunc,
) (*mcp.CallToolResult, error) {
	timeout := cmp.Or(c.server.config.Policy.CallTimeout, c.server.set.options.limits.CallTimeout)
	late := &lateError{
		timeoutError(t.Server, "answered the call or reported progress", timeout), timeout}
	active := c.calls.begin(ctx, late, progress)
	defer c.calls.end(active)
	if c.ctx.Err() != nil {
		return nil, serverError(t.Server, errEndedBefore)
	}
	ctx = active.ctx
	params := &mcp.CallToolParams{
		Name: t.Remote, Meta: mcp.Meta{"progressToken": active.token},
	}
	if len(arguments) > 0 {
		params.Arguments = arguments
	}
	with, cancelled := withCancellation(context.WithValue(ctx, schemaKey{}, t.Input))
	result, err := c.session.CallTool(with, params)
	if err != nil && ctx.Err() != nil && c.server.config.isProcess() {
		select {
		case <-cancelled:
		case <-c.ctx.Done():
		case <-time.After(cancellationTimeout):
		}
	}
	if err != nil {
		return nil, callError(ctx, c, c.visitURLs(ctx, err))
	}
	c.used.Store(true)
	if result.IsError {
		c.link.explainDenial(resultText(result))
	}
	return result, nil
}

// maxConnections is the most connections to a server that are tried for one request.
const maxConnections = 3

// fromServer gets something from a server. If the connection has just ended, or the answer was
// lost, it tries again. It returns the result of the last try, even if that failed.
func fromServer[T any](
	ctx context.Context, s *server, get func(context.Context, *connection) (T, error),
) (got T, err error) {
	wait := s.set.options.Wait
	for range maxConnections {
		c, notReady := s.ready(ctx)
		if notReady != nil {
			return got, notReady
		}
		bounded, cancel := context.WithTimeoutCause(ctx, wait,
			timeoutError(s.config.Name, "answered", wait))
		got, err = get(bounded, c)
		late := context.Cause(bounded)
		cancel()
		switch {
		case err == nil:
			c.used.Store(true)
			return got, nil
		case late != nil:
			return got, late
		case isDisconnected(err):
			c.end(errClosedByServer)
			err = errEndedInCall
		case transportErrorOf(err).fault <= refused:
			return got, serverError(s.config.Name, s.redactor.err(err))
		}
	}
	return got, serverError(s.config.Name, s.redactor.err(err))
}

// resultText returns the text of a result.
func resultText(r *mcp.CallToolResult) string {
	var lines []string
	for _, content := range r.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			lines = append(lines, t.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// callError returns why a call failed: the cause of ctx, the end of the server, or the server's
// error.
func callError(ctx context.Context, conn *connection, err error) error {
	s, cause := conn.server, context.Cause(ctx)
	ended := errors.Is(cause, errEndedInCall) || isDisconnected(err)
	exceeded, limited := errors.AsType[*limitError](conn.link.cause())
	switch {
	case limited && (ended || cause == nil):
		conn.end(exceeded)
		return serverError(s.config.Name, exceeded)
	case ended:
		conn.end(errClosedByServer)
		return serverError(s.config.Name, errEndedInCall)
	case cause != nil:
		return cause
	}
	return serverError(s.config.Name, s.redactor.err(withData(err)))
}

// withData returns an error with the data that the server sent with it, which often says what is
// wrong.
func withData(err error) error {
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || len(refusal.Data) == 0 || string(refusal.Data) == "null" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text.Truncate(string(refusal.Data), maxErrorText))
}

// progressInterval is the least time between two reports of the progress of one call.
const progressInterval = 200 * time.Millisecond

// activeCalls tracks the calls in progress on a connection.
type activeCalls struct {
	mu        sync.Mutex
	paused    int // how often, see pause
	lastToken int
	byToken   map[string]*activeCall
}

// activeCall is a call that was sent.
type activeCall struct {
	token  string
	ended  chan struct{} // closed once it was removed
	ctx    context.Context
	cancel context.CancelCauseFunc
	late   *lateError
	timer  *time.Timer // cancels the call with late, unless calls are paused or it progresses

	report    ProgressFunc
	reporting sync.WaitGroup
	busy      bool // progress is being reported, or was just now; guarded by the mu of activeCalls
}

// begin records a call, whose context ends with the connection, and after the time of late with
// late as the cause. report gets the progress of the call.
func (s *activeCalls) begin(
	ctx context.Context, late *lateError, report ProgressFunc,
) *activeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	a := &activeCall{
		token: strconv.Itoa(s.lastToken), ended: make(chan struct{}), late: late, report: report,
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(late.limit, func() { a.cancel(late) })
	if s.paused > 0 {
		a.timer.Stop()
	}
	if s.byToken == nil {
		s.byToken = map[string]*activeCall{}
	}
	s.byToken[a.token] = a
	return a
}

// pause stops the timeouts of all calls, because the server waits for the user. They start again
// when resume is called.
func (s *activeCalls) pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	for _, a := range s.byToken {
		a.timer.Stop()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.paused--; s.paused > 0 {
			return
		}
		for _, a := range s.byToken {
			a.timer.Reset(a.late.limit)
		}
	}
}

// during returns a context that ends with the last of the calls that are in progress now. It
// returns false if there are none.
func (s *activeCalls) during(ctx context.Context) (context.Context, context.CancelCauseFunc, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byToken) == 0 {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	left := new(atomic.Int64)
	left.Store(int64(len(s.byToken)))
	for _, a := range s.byToken {
		stop := context.AfterFunc(a.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(a.ctx))
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel, true
}

// wait waits until the calls that are in progress now have ended, or ctx ends.
func (s *activeCalls) wait(ctx context.Context) {
	s.mu.Lock()
	calls := slices.Collect(maps.Values(s.byToken))
	s.mu.Unlock()
	for _, a := range calls {
		select {
		case <-a.ended:
		case <-ctx.Done():
		}
	}
}

// cancel cancels all calls, because the connection has ended.
func (s *activeCalls) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.byToken {
		a.cancel(errEndedInCall)
	}
}

// progress reports the progress of a call, for which it has its whole time again. It does not
// block: what comes within progressInterval of a report is left out.
func (s *activeCalls) progress(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	p := r.Params
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byToken[token]
	if a == nil {
		return
	}
	if s.paused == 0 {
		a.timer.Reset(a.late.limit)
	}
	if a.busy {
		return
	}
	a.busy = true
	a.reporting.Go(func() {
		a.report(a.ctx, p)
		_ = pause.For(a.ctx, progressInterval)
		s.mu.Lock()
		defer s.mu.Unlock()
		a.busy = false
	})
}

// end removes a call, ends its context, and waits for the last report of its progress.
func (s *activeCalls) end(a *activeCall) {
	defer a.reporting.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byToken, a.token)
	close(a.ended)
	a.timer.Stop()
	a.cancel(nil)
}
