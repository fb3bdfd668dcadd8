package mcpclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// ArgumentsError: arguments that are no JSON object.
type ArgumentsError struct{ Tool string }

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("the arguments of %s are not a JSON object", e.Tool)
}

// ChangedToolError: a tool that its server changed after the user was asked for permission, or since it was looked up.
type ChangedToolError struct{ Tool string }

func (e *ChangedToolError) Error() string {
	return fmt.Sprintf("%s was not called: its server changed it in the meantime; call it again to be asked anew", e.Tool)
}

// Call implements [backend.Tools].
func (s *Set) Call(ctx context.Context, u backend.Updates, name string, arguments backend.Raw) (backend.ToolResult, error) {
	if len(arguments) == 0 {
		arguments = nil
	}
	if !isObject(arguments) {
		return backend.ToolResult{}, &ArgumentsError{Tool: name}
	}
	m, l, t, err := s.tool(ctx, name)
	if err != nil {
		return backend.ToolResult{}, err
	}
	c := &call{set: s, member: m, tool: t, name: name, arguments: arguments, updates: u, id: "mcp-" + rand.Text()[:16]}
	if err := c.show(ctx, pending, nil); err != nil {
		return backend.ToolResult{}, err
	}
	result, err := c.make(ctx, l)
	if err != nil {
		c.fail(ctx, err)
		return backend.ToolResult{}, err
	}
	status := completed
	if result.Failed {
		status = failed
	}
	return result, c.show(context.WithoutCancel(ctx), status, shown(result, s.options.MaxShown))
}

// isObject reports whether arguments are a JSON object or absent.
func isObject(arguments backend.Raw) bool {
	if arguments == nil {
		return true
	}
	var object map[string]json.RawMessage
	return json.Unmarshal(arguments, &object) == nil && object != nil
}

// call is one call of a tool.
type call struct {
	set       *Set
	member    member
	tool      tool
	name      string
	arguments backend.Raw
	updates   backend.Updates
	id        string
}

// make asks the user where that is needed, and calls.
func (c *call) make(ctx context.Context, l *link) (backend.ToolResult, error) {
	if !c.allowed() {
		if err := c.ask(ctx); err != nil {
			return backend.ToolResult{}, err
		}
		var err error
		if l, err = c.again(ctx); err != nil { // the question may have taken long
			return backend.ToolResult{}, err
		}
	}
	if err := c.show(ctx, inProgress, nil); err != nil {
		return backend.ToolResult{}, err
	}
	return c.send(ctx, l)
}

// send calls the tool and shows its progress.
func (c *call) send(ctx context.Context, l *link) (backend.ToolResult, error) {
	o := c.set.options
	ctx, cancel := context.WithTimeoutCause(ctx, o.CallTimeout, &LateError{Server: c.member.config.Name, What: "answered a call", Bound: o.CallTimeout})
	defer cancel()
	var showing sync.WaitGroup
	ctx, l, running, err := c.begin(ctx, l, func(ctx context.Context, r *running) {
		showing.Go(func() { c.showProgress(ctx, r) })
	})
	if err != nil {
		return backend.ToolResult{}, err
	}
	params := &mcp.CallToolParams{Name: c.tool.Remote, Meta: mcp.Meta{"progressToken": running.token}}
	if c.arguments != nil {
		params.Arguments = c.arguments
	}
	withdrawn := newWithdrawal()
	answer, err := l.session.CallTool(withdrawn.in(ctx), params)
	if err != nil && ctx.Err() != nil && l.lines != nil {
		withdrawn.wait(l.ended)
	}
	if err != nil {
		err = c.why(ctx, l, err)
	}
	running.end()
	showing.Wait()
	if err != nil {
		return backend.ToolResult{}, err
	}
	return resultOf(answer, o.MaxResult), nil
}

// begin notes the call at a connection: l, or if that has just ended the one after it, since nothing was sent yet.
func (c *call) begin(ctx context.Context, l *link, first func(context.Context, *running)) (context.Context, *link, *running, error) {
	for range maxLinks {
		if began, r, err := l.calls.begin(ctx, first); err == nil {
			return began, l, r, nil
		}
		var err error
		if l, err = c.again(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	return nil, nil, nil, &FailedError{Server: c.member.config.Name, Err: errEndedInCall}
}

// again is the connection to the server as it is now, if the tool is still what was shown to the user.
func (c *call) again(ctx context.Context) (*link, error) {
	m, l, t, err := c.set.tool(ctx, c.name)
	switch {
	case err != nil:
		return nil, err
	case m.server != c.member.server, t.fingerprint != c.tool.fingerprint:
		return nil, &ChangedToolError{Tool: c.name}
	}
	return l, nil
}

// maxLinks is how many connections of one server a call tries.
const maxLinks = 3

// why is why a call failed: the context's cause, that the server ended, or what it said.
func (c *call) why(ctx context.Context, l *link, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errEndedInCall), gone(err):
		l.calls.end()
		return &FailedError{Server: c.member.config.Name, Err: errEndedInCall}
	case cause != nil:
		return cause
	}
	return &FailedError{Server: c.member.config.Name, Err: c.member.scrubber.err(err)}
}

// gone reports whether an error is that the connection is over.
func gone(err error) bool { return errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) }

var errEndedInCall = errors.New("it ended during the call; why is in the log and in the list of servers, and it is started again when needed")

// fail shows that nothing, or not all, was done.
func (c *call) fail(ctx context.Context, err error) {
	text := err.Error()
	if ctx.Err() != nil {
		text = "The call was cancelled."
	}
	_ = c.show(context.WithoutCancel(ctx), failed, []backend.Raw{textBlock(text)})
}

// calls are the calls that run on a connection.
type calls struct {
	mu     sync.Mutex
	over   bool
	last   int
	active map[string]*running
}

// running is a call that was sent.
type running struct {
	token  string
	calls  *calls
	cancel context.CancelCauseFunc
	news   chan struct{} // has one when latest is new
	latest string        // guarded by calls.mu
	first  func()        // called once, with the first news; guarded by calls.mu
}

// begin notes a call. The context ends with the connection. first is called once, if there is news of how far the
// call is, until its end; it must not block.
func (c *calls) begin(ctx context.Context, first func(context.Context, *running)) (context.Context, *running, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, nil, errStopped
	}
	c.last++
	r := &running{token: strconv.Itoa(c.last), calls: c, news: make(chan struct{}, 1)}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.first = func() { first(ctx, r) }
	if c.active == nil {
		c.active = map[string]*running{}
	}
	c.active[r.token] = r
	return ctx, r, nil
}

func (r *running) end() {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	delete(r.calls.active, r.token)
	r.cancel(nil)
}

// end ends all calls.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, r := range c.active {
		r.cancel(errEndedInCall)
	}
}

// ended reports whether no call can begin any more.
func (c *calls) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// progress notes how far a call is. It does not block: only the latest is kept.
func (c *calls) progress(p *mcp.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.active[token]
	if r == nil {
		return
	}
	r.latest = describeProgress(p)
	if r.first != nil {
		r.first()
		r.first = nil
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func describeProgress(p *mcp.ProgressNotificationParams) string {
	const most = 500
	text := strconv.FormatFloat(p.Progress, 'g', 6, 64)
	if p.Total > 0 {
		text = fmt.Sprintf("%s of %s", text, strconv.FormatFloat(p.Total, 'g', 6, 64))
	}
	if message := cut(p.Message, most); message != "" {
		text += ": " + message
	}
	return text
}

// betweenProgress is the least time between two updates of one call.
const betweenProgress = 200 * time.Millisecond

// showProgress shows how far the call is, until ctx ends.
func (c *call) showProgress(ctx context.Context, r *running) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.news:
		}
		r.calls.mu.Lock()
		latest := cmp.Or(r.latest, "…")
		r.calls.mu.Unlock()
		if c.show(ctx, inProgress, []backend.Raw{textBlock(latest)}) != nil {
			return
		}
		timer := time.NewTimer(betweenProgress)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// callStatus is that of a tool call in ACP.
type callStatus string

const (
	pending    callStatus = "pending"
	inProgress callStatus = "in_progress"
	completed  callStatus = "completed"
	failed     callStatus = "failed"
)

// toolCall is a tool_call, a tool_call_update, or the toolCall of a question for permission, which has no kind of update.
type toolCall struct {
	Update  string      `json:"sessionUpdate,omitempty"`
	ID      string      `json:"toolCallId"`
	Title   string      `json:"title,omitempty"`
	Kind    string      `json:"kind,omitempty"`
	Status  callStatus  `json:"status"`
	Content []content   `json:"content,omitempty"`
	Input   backend.Raw `json:"rawInput,omitempty"`
}

type content struct {
	Type    string      `json:"type"`
	Content backend.Raw `json:"content"`
}

func contents(blocks []backend.Raw) []content {
	var all []content
	for _, b := range blocks {
		all = append(all, content{"content", b})
	}
	return all
}

// shape is the call as it is first shown.
func (c *call) shape(status callStatus) toolCall {
	input := c.arguments
	if input == nil {
		input = backend.Raw("{}")
	}
	return toolCall{ID: c.id, Title: c.title(), Kind: "other", Status: status, Input: input}
}

func (c *call) title() string {
	what := c.tool.Remote
	if c.tool.Title != "" && c.tool.Title != what {
		what = fmt.Sprintf("%s (%s)", c.tool.Title, what)
	}
	return cut(oneLine(fmt.Sprintf("%s, of MCP server %s", what, c.tool.Server)), 300)
}

// show shows how the call is.
func (c *call) show(ctx context.Context, status callStatus, blocks []backend.Raw) error {
	update := toolCall{Update: "tool_call_update", ID: c.id, Status: status, Content: contents(blocks)}
	if status == pending {
		update = c.shape(status)
		update.Update = "tool_call"
	}
	return c.updates.Update(ctx, backend.Encode(map[string]any{"update": update}))
}

func textBlock(text string) backend.Raw {
	return backend.Encode(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
}

// resultOf is a tool's result with at most limit bytes of content. The content blocks of MCP are those of ACP.
func resultOf(r *mcp.CallToolResult, limit int) backend.ToolResult {
	result := backend.ToolResult{Failed: r.IsError}
	b := bounded{left: limit}
	for _, c := range r.Content {
		b.add(c)
	}
	result.Content, result.Truncated = b.blocks, b.cut
	if r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil && len(raw) <= limit {
			result.Structured = raw
		} else {
			result.Truncated = true
		}
	}
	return result
}

// bounded gathers content up to a number of bytes. Of text the beginning is kept; of what else is too large the first
// are named.
type bounded struct {
	left   int
	blocks []backend.Raw
	cut    bool
	named  int // of what was left out
}

// maxNamed is how many blocks are named that were left out.
const maxNamed = 10

func (b *bounded) add(c mcp.Content) {
	if c == nil {
		return
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return
	}
	b.addRaw(raw)
}

func (b *bounded) addRaw(raw backend.Raw) {
	if len(raw) <= b.left {
		b.left -= len(raw)
		b.blocks = append(b.blocks, raw)
		return
	}
	var block struct{ Type, Text string }
	_ = json.Unmarshal(raw, &block) // what cannot be read is not text
	first := !b.cut
	b.cut = true
	switch {
	case block.Type == "text" && b.left > 0:
		kept := cut(block.Text, b.left)
		b.blocks = append(b.blocks, textBlock(fmt.Sprintf("%s\n[cut: the text has %d bytes]", kept, len(block.Text))))
		b.left = 0
	case b.named == maxNamed:
		b.named++
		b.blocks = append(b.blocks, textBlock("[more is left out]"))
	case b.named < maxNamed && (first || block.Type != "text"):
		b.named++
		b.blocks = append(b.blocks, textBlock(fmt.Sprintf("[left out: %s of %d bytes]", cut(block.Type, 40), len(raw))))
	}
}

// shown is a result as the client is shown it, bounded once more.
func shown(r backend.ToolResult, limit int) []backend.Raw {
	b := bounded{left: limit}
	for _, raw := range r.Content {
		b.addRaw(raw)
	}
	return b.blocks
}
