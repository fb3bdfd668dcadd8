package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
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

// prompted is a prompt, which may outlive the connection over which it came.
type prompted struct {
	turn   *turns.Turn
	from   *connection
	params promptParams
	viewed *session // that the client had open when it sent the prompt, or nil
	at     *ticket
	leave  context.CancelCauseFunc // ends the context of the request
}

// acceptPrompt serves session/prompt. On the read loop it takes the prompt's place in the queue, or
// rejects the prompt.
func (c *connection) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	params, err := decodePrompt(r.Params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	var viewed *session
	limit := c.adapter.turnLimit()
	if q := c.home.queues.Find(params.id); q != nil {
		opens := q.IsOpening(c) // only this read loop adds such requests
		if s := q.Active(); s != nil {
			if s.viewers.Has(c) {
				viewed = s
			} else if !opens && q.Active() == s { // it was not closed meanwhile
				return jsonrpc.Fail(errNotActive(q.ID))
			}
			limit = s.adapter.turnLimit()
		}
	}
	if err := c.home.owner.take(turnSlot, c.adapter); err != nil {
		return jsonrpc.Fail(err)
	}
	request, cancel := c.adapter.requestContext(ctx)
	stop := context.AfterFunc(c.serving, func() { cancel(jsonrpc.ErrClosed) })
	leave := func(cause error) {
		stop()
		cancel(cause)
	}
	turn := turns.New(request)
	at, err := c.home.queues.PromptTicket(params.id, c, turn, limit)
	if err != nil {
		leave(nil)
		c.home.owner.release(turnSlot, c.adapter)
		return jsonrpc.Fail(protocolError(err))
	}
	p := &prompted{turn: turn, from: c, params: params, viewed: viewed, at: at, leave: leave}
	return func() (json.RawMessage, error) { return p.serve(ctx, r) }
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

// ending is how the turn of a prompt has ended.
type ending struct {
	outcome turns.Outcome
	saw     *viewers // those that saw the turn begin, nil if it did not
}

// serve has the turn of r run, and waits for its end as long as the client is connected. ctx is the
// context of r.
func (p *prompted) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	ended := make(chan ending, 1)
	p.from.adapter.tasks.Go(func() { ended <- p.lifecycle() })
	var e ending
	select {
	case e = <-ended:
	case <-ctx.Done():
		switch {
		case !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed): // the client cancelled the request
		case p.from.graceNow() == 0:
			p.leave(jsonrpc.ErrClosed)
		case p.turn.Cause() == nil:
			p.from.adapter.tasks.Go(func() { p.conclude(<-ended) })
			return nil, jsonrpc.ErrClosed
		}
		e = <-ended
	}
	conclude := sync.OnceFunc(func() { p.conclude(e) })
	if e.saw != nil {
		// If the client does not read while others have the session open, they do not wait for it.
		e.saw.Settle(ctx, p.from, conclude)
	}
	r.BeforeResponse(func(json.RawMessage, error) (json.RawMessage, error) {
		o := p.decide(e)
		return o.Result, o.Err
	})
	r.AfterResponse(conclude)
	return e.outcome.Result, protocolError(e.outcome.Err)
}

// decide decides how the prompt is answered, and returns what clients are told.
func (p *prompted) decide(e ending) turns.Outcome {
	o := p.turn.Decide(e.outcome)
	o.Err = p.from.withoutStorePath(protocolError(o.Err))
	return o
}

// conclude shows those who saw the turn begin how it has ended, except the client that gets the
// response, and frees what the prompt holds. The next turn may begin then.
func (p *prompted) conclude(e ending) {
	defer func() {
		p.at.Answered()
		p.leave(nil)
		p.from.home.owner.release(turnSlot, p.from.adapter)
	}()
	o := p.decide(e)
	if e.saw == nil || e.saw.Others(p.from) == 0 {
		return
	}
	ended := map[string]any{"stopReason": o.StopReason()}
	if o.Err != nil {
		ended = map[string]any{"error": o.Err.Error()}
	}
	ctx, cancel := tasks.Commit(e.saw.adapter.base)
	defer cancel()
	_ = e.saw.Shown.With(ctx, func(*transcript.Shown) error {
		e.saw.Mark(ctx, p.from, "turn", ended)
		return nil
	})
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
	case own:
		return ""
	case prompts.IsCommandName(command.Name) && command.Arguments == "":
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
