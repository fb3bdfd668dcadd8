package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
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
	*turns.Turn
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
	p := &prompted{Turn: turn, from: c, params: params, viewed: viewed, at: at, leave: leave}
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

// serve runs the turn of r, and waits for its end as long as the client is connected. ctx is the
// context of r.
func (p *prompted) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	ended := make(chan *viewers, 1)
	p.from.adapter.tasks.Go(func() { ended <- p.run() })
	var saw *viewers
	select {
	case saw = <-ended:
	case <-ctx.Done():
		switch {
		case !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed): // the client cancelled the request
		case p.from.graceNow() == 0:
			p.leave(jsonrpc.ErrClosed)
		case p.Cause() == nil:
			p.from.adapter.tasks.Go(func() { p.conclude(<-ended) })
			return nil, jsonrpc.ErrClosed
		}
		saw = <-ended
	}
	conclude := sync.OnceFunc(func() { p.conclude(saw) })
	if saw != nil {
		// If the client does not read while others have the session open, they do not wait for it.
		saw.Settle(ctx, p.from, conclude)
	}
	r.BeforeResponse(func(json.RawMessage, error) (json.RawMessage, error) {
		o := p.decide()
		return o.Result, o.Err
	})
	r.AfterResponse(conclude)
	o := p.Outcome()
	return o.Result, protocolError(o.Err)
}

// run runs the turn, until everything that was said in it is stored. It returns the viewers that
// saw it begin, nil if it did not.
func (p *prompted) run() (saw *viewers) {
	err := p.from.adapter.tasks.Guard("session/prompt", func() error {
		t, err := p.begin()
		if err != nil {
			return err
		}
		saw = t.session.viewers
		t.run()
		return nil
	})
	if err != nil {
		p.Finish(turns.Outcome{Err: err})
	}
	return saw
}

// begin waits until the turn may run, and stores its start, in the session that the client has
// open, or had when it sent the prompt. A backend without overlapping turns gets a prompt once all
// earlier prompts were answered, and so does an agent whose session a command may open again.
func (p *prompted) begin() (t *begunTurn, err error) {
	q, ctx := p.at.Queue, p.Context()
	if err := p.from.initialized(ctx); err != nil {
		return nil, err
	}
	if err := p.at.Acquire(ctx); err != nil {
		return nil, err
	}
	s := q.Active()
	if s == nil || s != p.viewed && !s.viewers.Has(p.from) {
		return nil, p.from.adapter.whyInactive(ctx, q.ID)
	}
	_, mayReopen := commands.Parse(p.params.rest)
	exclusive := mayReopen || !s.adapter.info().OverlappingTurns
	overlaps, err := p.at.AwaitTurn(exclusive, s.adapter.turnLimit())
	if err != nil {
		return nil, err
	}
	if p.from.endsTurns() { // the turn before may have been the first to learn it
		p.End(backend.ErrCancelled)
		return nil, p.Cause()
	}
	if s = q.Active(); s == nil { // it was closed meanwhile
		return nil, p.from.adapter.whyInactive(ctx, q.ID)
	}
	s.record.Restart(ctx)
	err = s.viewers.shown.With(ctx, func(now *shown) error {
		// An update that the client has seen may not be recorded yet. It comes before the prompt in
		// the history too.
		if err := s.record.Flush(ctx); err != nil {
			return err
		}
		t, err = p.beginLocked(s, now, overlaps)
		return err
	})
	return t, err
}

// beginLocked stores the start of the turn before the backend acts, and shows it to the clients, as
// well as the title that s gets from its first prompt. overlaps says that other turns may be
// running. The caller uses s.viewers.shown.
func (p *prompted) beginLocked(s *session, now *shown, overlaps bool) (*begunTurn, error) {
	ctx, begun := p.Context(), sessionstore.Turn{Prompt: p.params.updates(), Overlaps: overlaps}
	if !now.titled {
		begun.Title = p.params.title()
	}
	var number int64
	err := s.record.Write(func(l sessionstore.Lease) (err error) {
		// The turn must not end while it is open whether the prompt is stored: it is shown if it
		// is.
		ctx, cancel := tasks.Commit(ctx)
		defer cancel()
		number, err = s.adapter.options.Store.BeginTurn(ctx, l, begun)
		return err
	})
	if err != nil {
		s.failed(err)
		return nil, err
	}
	if s.viewers.Others(p.from) > 0 {
		s.viewers.mark(ctx, p.from, "turn", map[string]bool{"running": true})
		for _, u := range begun.Prompt {
			s.viewers.show(ctx, p.from, u)
		}
	}
	if begun.Title != "" {
		s.transcript.showTitleLocked(ctx, now, begun.Title)
	}
	updates := &turnUpdates{turn: p.Turn, said: tasks.NewMutex(saidInTurn{session: s})}
	return &begunTurn{p, s, number, begun.Title, updates}, nil
}

// decide decides how the prompt is answered, and returns what clients are told.
func (p *prompted) decide() turns.Outcome {
	o := p.Decide()
	o.Err = p.from.withoutStorePath(protocolError(o.Err))
	return o
}

// conclude shows those who saw the turn begin how it has ended, except the client that gets the
// response, and frees what the prompt holds. The next turn may begin then.
func (p *prompted) conclude(saw *viewers) {
	defer func() {
		p.at.Answered()
		p.leave(nil)
		p.from.home.owner.release(turnSlot, p.from.adapter)
	}()
	o := p.decide()
	if saw == nil || saw.Others(p.from) == 0 {
		return
	}
	ended := map[string]any{"stopReason": o.StopReason()}
	if o.Err != nil {
		ended = map[string]any{"error": o.Err.Error()}
	}
	ctx, cancel := tasks.Commit(saw.adapter.base)
	defer cancel()
	_ = saw.shown.With(ctx, func(*shown) error {
		saw.mark(ctx, p.from, "turn", ended)
		return nil
	})
}
