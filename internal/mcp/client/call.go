package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Call implements [backend.Tools].
func (s *Set) Call(ctx context.Context, u backend.Updates, name string, arguments backend.Raw) (backend.ToolResult, error) {
	if len(arguments) > 0 {
		var object map[string]json.RawMessage
		if json.Unmarshal(arguments, &object) != nil || object == nil {
			return backend.ToolResult{}, fmt.Errorf("the arguments of %s are not a JSON object", name)
		}
	}
	t, conn, err := s.findTool(ctx, name)
	if err != nil {
		return backend.ToolResult{}, err
	}
	c := &call{set: s, server: conn.server, tool: t, arguments: arguments, updates: u, id: sdk.ToolCallId("mcp-" + rand.Text()[:16])}
	if err := c.showStart(ctx); err != nil {
		return backend.ToolResult{}, err
	}
	result, err := c.run(ctx, conn)
	if err != nil {
		c.showFailure(ctx, err)
		return backend.ToolResult{}, err
	}
	return result, c.showResult(context.WithoutCancel(ctx), result)
}

// call is one call of a tool.
type call struct {
	set       *Set
	server    *server
	tool      tool
	arguments backend.Raw // empty for none
	updates   backend.Updates
	id        sdk.ToolCallId
}

// run asks for permission if necessary, and calls the tool.
func (c *call) run(ctx context.Context, conn *connection) (backend.ToolResult, error) {
	if !c.isAllowed() {
		if err := c.askPermission(ctx); err != nil {
			return backend.ToolResult{}, err
		}
		var err error
		if conn, err = c.reconnect(ctx); err != nil { // the user may have taken a long time
			return backend.ToolResult{}, err
		}
	}
	if err := c.showUpdate(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		return backend.ToolResult{}, err
	}
	return c.send(ctx, conn)
}

// reconnect returns the current connection to the server, provided that the tool is still the one
// that the user was shown.
func (c *call) reconnect(ctx context.Context) (*connection, error) {
	t, conn, err := c.set.findTool(ctx, c.tool.Name)
	if err == nil && (conn.server != c.server || t.fingerprint != c.tool.fingerprint) {
		err = fmt.Errorf("%s was not called, because its server has changed it in the meantime; call it again to be asked for permission", c.tool.Name)
	}
	return conn, err
}

// send calls the tool and shows its progress.
func (c *call) send(ctx context.Context, conn *connection) (backend.ToolResult, error) {
	var showing sync.WaitGroup
	ctx, conn, active, err := c.begin(ctx, conn, func(ctx context.Context, a *activeCall) {
		showing.Go(func() { c.showProgress(ctx, a) })
	})
	if err != nil {
		return backend.ToolResult{}, err
	}
	params := &mcp.CallToolParams{Name: c.tool.Remote, Meta: mcp.Meta{"progressToken": active.token}}
	if len(c.arguments) > 0 {
		params.Arguments = c.arguments
	}
	cancelled := newCancellation()
	answer, err := conn.session.CallTool(cancelled.in(ctx), params)
	if err != nil && ctx.Err() != nil && conn.stdio != nil {
		cancelled.wait(conn.ended)
	}
	if err != nil {
		err = c.callError(ctx, conn, conn.visitURLs(ctx, err))
	}
	active.end()
	showing.Wait()
	if err != nil {
		return backend.ToolResult{}, err
	}
	return toolResult(answer, c.set.options.limits.MaxResultBytes), nil
}

// begin records the call at conn, or at the next connection if conn has just ended, since nothing
// was sent yet.
func (c *call) begin(ctx context.Context, conn *connection, onProgress func(context.Context, *activeCall)) (context.Context, *connection, *activeCall, error) {
	timeout := c.set.options.limits.CallTimeout
	late := timeoutError(c.server.config.Name, "answered the call", timeout)
	for range maxConnections {
		if callCtx, active, ok := conn.calls.begin(ctx, timeout, late, onProgress); ok {
			return callCtx, conn, active, nil
		}
		var err error
		if conn, err = c.reconnect(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	return nil, nil, nil, serverError(c.server.config.Name, errEndedInCall)
}

// callError returns why a call failed: the cause of ctx, that the server ended, or the server's
// error.
func (c *call) callError(ctx context.Context, conn *connection, err error) error {
	cause := context.Cause(ctx)
	ended := errors.Is(cause, errEndedInCall) || isDisconnected(err)
	if exceeded := conn.limitExceeded(); exceeded != nil && (ended || cause == nil) {
		ended, err = true, exceeded
	} else if ended {
		err = errEndedInCall
	}
	switch {
	case ended:
		conn.calls.close()
		return serverError(c.server.config.Name, err)
	case cause != nil:
		return cause
	}
	return serverError(c.server.config.Name, c.server.redactor.err(err))
}

// title names the server before what it says itself, so that it cannot push its name out of sight.
func (c *call) title() string {
	name := printableName(c.tool.Remote)
	if c.tool.Title != "" && c.tool.Title != c.tool.Remote {
		name = fmt.Sprintf("%s (%s)", printableName(c.tool.Title), name)
	}
	return "MCP server " + quotedName(c.tool.Server) + ": " + name
}

func (c *call) input() backend.Raw {
	if len(c.arguments) == 0 {
		return backend.Raw("{}")
	}
	return c.arguments
}

func textContent(s string) []sdk.ToolCallContent {
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(s))}
}

// showStart shows the pending call.
func (c *call) showStart(ctx context.Context) error {
	return c.update(ctx, sdk.SessionUpdateToolCall{
		SessionUpdate: "tool_call", ToolCallId: c.id, Title: c.title(), Kind: c.tool.kind, Status: sdk.ToolCallStatusPending, RawInput: c.input(),
	})
}

// showUpdate shows a new status, and content unless it is nil.
func (c *call) showUpdate(ctx context.Context, status sdk.ToolCallStatus, content []sdk.ToolCallContent) error {
	return c.update(ctx, sdk.SessionToolCallUpdate{SessionUpdate: "tool_call_update", ToolCallId: c.id, Status: &status, Content: content})
}

// showResult shows the end of the call. The server's content blocks are passed on as they are, up
// to a limit.
func (c *call) showResult(ctx context.Context, r backend.ToolResult) error {
	type block struct {
		Type    string      `json:"type"`
		Content backend.Raw `json:"content"`
	}
	status := sdk.ToolCallStatusCompleted
	if r.Failed {
		status = sdk.ToolCallStatusFailed
	}
	update := struct {
		sdk.SessionToolCallUpdate
		Content []block `json:"content,omitempty"`
	}{SessionToolCallUpdate: sdk.SessionToolCallUpdate{SessionUpdate: "tool_call_update", ToolCallId: c.id, Status: &status}}
	shown := newBoundedContent(c.set.options.limits.MaxShownBytes)
	for _, raw := range r.Content {
		shown.addRaw(raw)
	}
	for _, raw := range shown.blocks {
		update.Content = append(update.Content, block{"content", raw})
	}
	return c.update(ctx, update)
}

// showFailure shows that the call was not made or did not complete.
func (c *call) showFailure(ctx context.Context, err error) {
	message := err.Error()
	if ctx.Err() != nil {
		message = "The call was cancelled."
	}
	_ = c.showUpdate(context.WithoutCancel(ctx), sdk.ToolCallStatusFailed, textContent(message))
}

func (c *call) update(ctx context.Context, update any) error {
	return c.updates.Update(ctx, backend.NewUpdate(update))
}

// progressInterval is the least time between two progress updates of one call.
const progressInterval = 200 * time.Millisecond

// showProgress shows the progress of the call until ctx ends.
func (c *call) showProgress(ctx context.Context, a *activeCall) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		}
		if c.showUpdate(ctx, sdk.ToolCallStatusInProgress, textContent(a.progress())) != nil {
			return
		}
		timer := time.NewTimer(progressInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// activeCalls are the calls in progress on a connection.
type activeCalls struct {
	mu        sync.Mutex
	closed    bool
	paused    int // how often, see pause
	lastToken int
	byToken   map[string]*activeCall
}

// activeCall is a call that was sent.
type activeCall struct {
	token   string
	calls   *activeCalls
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration
	timer   *time.Timer   // cancels the call after the timeout, unless calls are paused
	changed chan struct{} // receives when latest is new

	// Guarded by calls.mu.
	latest     string
	onProgress func() // called on the first progress, then nil
}

// begin records a call, whose context ends with the connection, and after a timeout with the cause
// late. It returns false if the connection has ended. onProgress is called at the first progress,
// if there is any before the end of the call; it must not block.
func (s *activeCalls) begin(ctx context.Context, timeout time.Duration, late error, onProgress func(context.Context, *activeCall)) (context.Context, *activeCall, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, false
	}
	s.lastToken++
	a := &activeCall{token: strconv.Itoa(s.lastToken), calls: s, timeout: timeout, changed: make(chan struct{}, 1)}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx, a.timer = ctx, time.AfterFunc(timeout, func() { a.cancel(late) })
	if s.paused > 0 {
		a.timer.Stop()
	}
	a.onProgress = func() { onProgress(ctx, a) }
	if s.byToken == nil {
		s.byToken = map[string]*activeCall{}
	}
	s.byToken[a.token] = a
	return ctx, a, true
}

// pause stops the timeouts of all calls, since the server waits for the user. They start over when
// resume is called.
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
			a.timer.Reset(a.timeout)
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

// close cancels all calls, since the connection has ended.
func (s *activeCalls) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, a := range s.byToken {
		a.cancel(errEndedInCall)
	}
}

func (s *activeCalls) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// progress records the progress of a call. It does not block: only the latest is kept.
func (s *activeCalls) progress(p *mcp.ProgressNotificationParams) {
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
	a.latest = describeProgress(p)
	if a.onProgress != nil {
		a.onProgress()
		a.onProgress = nil
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// end removes the call and ends its context.
func (a *activeCall) end() {
	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	delete(a.calls.byToken, a.token)
	a.timer.Stop()
	a.cancel(nil)
}

func (a *activeCall) progress() string {
	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	return cmp.Or(a.latest, "…")
}

func describeProgress(p *mcp.ProgressNotificationParams) string {
	const maxMessage = 500
	progress := strconv.FormatFloat(p.Progress, 'g', 6, 64)
	if p.Total > 0 {
		progress += " of " + strconv.FormatFloat(p.Total, 'g', 6, 64)
	}
	if message := text.Truncate(p.Message, maxMessage); message != "" {
		progress += ": " + message
	}
	return progress
}

// toolResult returns a result with at most limit bytes of content. MCP's content blocks are valid
// in ACP.
func toolResult(r *mcp.CallToolResult, limit int) backend.ToolResult {
	content := newBoundedContent(limit)
	for _, block := range r.Content {
		content.add(block)
	}
	result := backend.ToolResult{Failed: r.IsError}
	if r.StructuredContent != nil {
		raw, err := json.Marshal(r.StructuredContent)
		if err == nil && len(raw) <= limit {
			result.Structured = raw
		} else {
			content.size += len(raw)
			content.truncated = true
		}
	}
	result.Content, result.Cut = content.blocks, content.describeCut()
	return result
}

// boundedContent collects content blocks up to a number of bytes. It truncates text, and names the
// first other blocks that are too large.
type boundedContent struct {
	limit, left int
	size        int // of all blocks
	blocks      []backend.Raw
	truncated   bool
	omitted     int // blocks replaced by a note
}

func newBoundedContent(limit int) *boundedContent { return &boundedContent{limit: limit, left: limit} }

// maxOmitted is how many notes about blocks that were left out are added.
const maxOmitted = 10

// describeCut says how much there is and how much of it may be used, if that is less.
func (b *boundedContent) describeCut() string {
	if !b.truncated {
		return ""
	}
	return fmt.Sprintf("The result has %s, and the limit is %s", text.Size(b.size), text.Size(b.limit))
}

func (b *boundedContent) add(c mcp.Content) {
	if raw, err := json.Marshal(c); c != nil && err == nil {
		b.addRaw(raw)
	}
}

func (b *boundedContent) addRaw(raw backend.Raw) {
	b.size += len(raw)
	if len(raw) <= b.left {
		b.left -= len(raw)
		b.blocks = append(b.blocks, raw)
		return
	}
	var block struct{ Type, Text string }
	_ = json.Unmarshal(raw, &block) // a block that cannot be read is not text
	first := !b.truncated
	b.truncated = true
	switch {
	case block.Type == "text" && b.left > 0:
		b.note("%s\n[truncated: the text has %s; the limit is %s]", text.Truncate(block.Text, b.left), text.Size(len(block.Text)), text.Size(b.limit))
		b.left = 0
	case b.omitted == maxOmitted:
		b.omitted++
		b.note("[more was left out]")
	case b.omitted < maxOmitted && (first || block.Type != "text"):
		b.omitted++
		b.note("[left out: %s of %s; the limit is %s]", text.Truncate(block.Type, 40), text.Size(len(raw)), text.Size(b.limit))
	}
}

func (b *boundedContent) note(format string, args ...any) {
	b.blocks = append(b.blocks, backend.Encode(sdk.TextBlock(fmt.Sprintf(format, args...))))
}
