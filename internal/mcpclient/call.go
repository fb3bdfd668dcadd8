package mcpclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

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

// Call implements [runtime.Tools].
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
