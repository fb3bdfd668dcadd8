package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxTurns is how many prompts of a session may be unanswered, unless the backend handles
// overlapping turns: one that runs and one that waits for it.
const maxTurns = 2

// promptRequest is a session/prompt, which may outlive the connection over which it came. Its turn
// has the outcome.
type promptRequest struct {
	turn   *turns.Turn
	from   *connection
	params promptParams
	viewed *session // that the client had open when it sent the prompt, or nil
	ticket turns.PromptTicket[session]
	leave  context.CancelCauseFunc // ends the context of the request, and with it the turn
	// freeSlot frees its place among the unanswered prompts of the principal.
	freeSlot func()

	// Set when the turn begins:
	number   int64
	stored   sessionstore.Turn
	audience *viewers // those that saw it begin
}

// acceptPrompt serves session/prompt. On the read loop it takes the prompt's place in the queue, or
// rejects the prompt.
func (c *connection) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	params, err := decodePrompt(r.Params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	viewed, limit, err := c.viewedSession(params.id)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	freeSlot, err := c.adapter.take(turnSlot)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	request, leave := c.promptContext(ctx)
	p := &promptRequest{turn: turns.New(request), from: c, params: params, viewed: viewed,
		leave: leave, freeSlot: freeSlot}
	p.ticket, err = c.home.queues.PromptTicket(params.id, c, p.turn, limit)
	if err != nil {
		p.release()
		return jsonrpc.Fail(protocolError(err))
	}
	return func() (json.RawMessage, error) { return p.serve(ctx, r) }
}

// viewedSession returns the session with this id that the client has open, and how many of its
// turns may be unanswered. It returns nil for one that the client may be opening.
func (c *connection) viewedSession(id sessionstore.ID) (viewed *session, limit int, err error) {
	limit = c.adapter.turnLimit()
	q := c.home.queues.Find(id)
	if q == nil {
		return nil, limit, nil
	}
	opens := q.IsOpening(c) // only this read loop adds such requests
	s := q.Active()
	if s == nil {
		return nil, limit, nil
	}
	limit = s.adapter.turnLimit()
	switch {
	case s.viewers.Has(c):
		return s, limit, nil
	case !opens && q.Active() == s: // it was not closed meanwhile
		return nil, limit, errNotActive(id)
	}
	return nil, limit, nil
}

// promptContext returns a context for a turn, which ends as that of requestContext does and with
// Serve's. The caller calls leave.
func (c *connection) promptContext(
	ctx context.Context,
) (_ context.Context, leave context.CancelCauseFunc) {
	request, end := c.adapter.requestContext(ctx)
	stop := context.AfterFunc(c.serving, func() { end(jsonrpc.ErrClosed) })
	return request, func(cause error) {
		stop()
		end(cause)
	}
}

// release frees what the prompt holds besides the ticket.
func (p *promptRequest) release() {
	p.leave(nil)
	p.freeSlot()
}

// turnLimit returns how many turns of a session may be unanswered, 0 for any number.
func (a *adapter) turnLimit() int {
	if a.info().OverlappingTurns {
		return 0
	}
	return maxTurns
}

// promptParams are the params of session/prompt.
type promptParams struct {
	id     sessionstore.ID
	blocks []json.RawMessage
	rest   backend.Raw // the params without sessionId
}

var promptShape = shape(shapes{"prompt": list(blockShape)}, protocol.SessionID, "_meta")

func decodePrompt(raw json.RawMessage) (promptParams, error) {
	params, err := parseParams(raw, promptShape)
	if err != nil {
		return promptParams{}, err
	}
	var v strictjson.Violations
	p := promptParams{id: sessionstore.ID(v.Text(params.Field(protocol.SessionID))),
		rest: params.Without(protocol.SessionID)}
	for _, block := range v.Items(params.Field("prompt")) {
		p.blocks = append(p.blocks, block.Raw())
		content.CheckBlock(&v, block)
	}
	return p, v.Err()
}

// updates returns the prompt as it is stored in the history.
func (p promptParams) updates() []sessionstore.Update {
	updates := make([]sessionstore.Update, len(p.blocks))
	for i, block := range p.blocks {
		updates[i] = sessionstore.Update{
			Kind: sessionstore.UserMessageChunk,
			Raw: json.RawMessage(`{"update":{"sessionUpdate":"user_message_chunk","content":` +
				string(block) + `}}`),
		}
	}
	return updates
}

// serve has the turn of r run, and answers r as long as the client is connected. ctx is the context
// of r.
func (p *promptRequest) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	group, ended := p.from.adapter.tasks, make(chan struct{})
	group.Go(func() {
		defer close(ended)
		if err := group.Guard("session/prompt", p.run); err != nil {
			p.turn.Fail(cmp.Or(p.turn.Cause(), err))
		}
	})
	if !p.awaitEnd(ctx, ended) {
		group.Go(func() {
			<-ended
			p.conclude()
		})
		return nil, jsonrpc.ErrClosed
	}
	return p.answer(ctx, r)
}

// awaitEnd waits for the end of the turn, unless the client leaves and the turn goes on without it.
// It reports whether the turn has ended.
func (p *promptRequest) awaitEnd(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) { // otherwise the request was cancelled
		if p.from.graceNow() == 0 {
			p.leave(jsonrpc.ErrClosed)
		} else if p.turn.Cause() == nil {
			return false
		}
	}
	<-ended
	return true
}

// A session without a title gets the first line of its next prompt. An update of the agent replaces
// the title, and so does the agent's list of its sessions (known.go in sessionstore/internal/core).
// Neither replaces a title that a client has set (session_set_title.go).

// maxChosenTitle is the maximum length of a title that a client sets, in characters. Longer ones
// are truncated. All other titles are those of [listing.TitleLine].
const maxChosenTitle = 200

// title returns the first line that the user typed, without the slash of a command. It is "" for a
// command that has no arguments or is one of the adapter's.
func (p promptParams) title() string {
	command, own := commands.Parse(p.rest)
	switch {
	case own, prompts.IsCommandName(command.Name) && command.Arguments == "":
		return ""
	case prompts.IsCommandName(command.Name):
		return firstLine(command.Name + " " + command.Arguments)
	}
	typed, _ := prompts.Typed(p.rest)
	for _, block := range typed {
		if title := firstLine(block.Text); title != "" {
			return title
		}
	}
	return ""
}

// firstLine returns the first line of s with words of the user, as a title.
func firstLine(s string) string {
	s = s[len(beforeWords().FindString(s)):]
	for line := range strings.Lines(s) {
		if title := listing.TitleLine(line); title != "" {
			return title
		}
	}
	return ""
}

// beforeWords matches elements that a program put in front of a text, and the mark of a code block.
var beforeWords = text.Pattern("^(?s:\\s*<([a-z]+[-_][a-z_-]+)>.*?</[a-z]+[-_][a-z_-]+>)*" +
	"(?:\\s*(?:```|~~~)[^\n]*\n)?")
