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
	unwait func() bool             // keeps the end of Serve from calling leave
	number int64                   // of the turn in the store
	title  string                  // that the prompt gives the session, "" if it had one
	over   sync.Once               // see conclude
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
	request, leave := c.adapter.requestContext(ctx)
	turn := turns.New(request)
	at, err := c.home.queues.PromptTicket(params.id, c, turn, limit)
	if err != nil {
		leave(nil)
		c.home.owner.release(turnSlot, c.adapter)
		return jsonrpc.Fail(protocolError(err))
	}
	p := &prompted{Turn: turn, from: c, params: params, viewed: viewed, at: at, leave: leave,
		unwait: context.AfterFunc(c.serving, func() { leave(jsonrpc.ErrClosed) })}
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

// run runs the turn. It stores the prompt when its turn has come, and returns when everything said
// in the turn is stored.
func (p *prompted) run() outcome {
	if err := p.from.initialized(p.Context()); err != nil {
		return outcome{err: err}
	}
	if err := p.at.Acquire(p.Context()); err != nil {
		return outcome{err: err}
	}
	s, err := p.claimTurn()
	if err != nil {
		return outcome{err: protocolError(err)}
	}
	o := outcome{err: tasks.ErrPanicked, session: s}
	_ = s.adapter.tasks.Guard("session/prompt", func() error {
		o = p.runIn(s)
		return nil
	})
	return o
}

// runIn runs the turn, whose start is stored, in s.
func (p *prompted) runIn(s *session) outcome {
	p.from.observe(TurnEvent{Session: s.id, Running: true})
	var result backend.Raw
	updates := newTurnUpdates(p.Turn, s)
	err := s.adapter.tasks.Guard("turn", func() (err error) {
		result, err = p.runTurn(s, updates)
		return err
	})
	return p.finishTurn(updates, result, err)
}

// claimTurn waits until the turn may run, and stores its start, in the session that the client has
// open, or had when it sent the prompt. A backend without overlapping turns gets a prompt once all
// earlier prompts were answered, and so does an agent whose session a command may open again.
func (p *prompted) claimTurn() (*session, error) {
	q, ctx := p.at.Queue, p.Context()
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
	return s, s.viewers.shown.With(ctx, func(now *shown) error {
		// An update that the client has seen may not be recorded yet. It comes before the prompt in
		// the history too.
		if err := s.record.Flush(ctx); err != nil {
			return err
		}
		return p.storePrompt(s, now, overlaps)
	})
}

// storePrompt stores the start of the turn before the backend acts, and shows the clients the title
// that s gets from its first prompt. overlaps says that other turns may be running.
func (p *prompted) storePrompt(s *session, now *shown, overlaps bool) error {
	ctx, begun := p.Context(), sessionstore.Turn{Prompt: p.params.updates(), Overlaps: overlaps}
	if !now.titled {
		begun.Title = p.params.title()
	}
	err := s.record.Write(func(l sessionstore.Lease) (err error) {
		// The turn must not end while it is open whether the prompt is stored: it is shown if it
		// is.
		ctx, cancel := tasks.Commit(ctx)
		defer cancel()
		p.number, err = s.adapter.options.Store.BeginTurn(ctx, l, begun)
		return err
	})
	if err != nil {
		s.failed(err)
		return err
	}
	p.showPrompt(s)
	if p.title = begun.Title; p.title != "" {
		s.transcript.showTitleLocked(ctx, now, p.title)
	}
	return nil
}

// runTurn runs the turn in s. It releases the queue when the backend has the prompt.
func (p *prompted) runTurn(s *session, updates *turnUpdates) (backend.Raw, error) {
	ctx, guard := p.Context(), s.adapter.tasks
	s.watchLease(ctx)
	s.Permits().ForgetAsked()
	s.catalog.refresh(ctx)
	s.showNotice(ctx)
	return p.Await(guard.Go, s.adapter.options.tuning.CancelGrace,
		func() (result backend.Raw, err error) {
			defer p.at.Release() // also after a panic
			err = guard.Guard("prompt", func() (err error) {
				result, err = p.answer(s, updates)
				return err
			})
			return result, err
		})
}

// answer answers a command of the adapter, or has the backend of s answer the prompt. It releases
// the ticket once the backend has the prompt.
func (p *prompted) answer(s *session, updates *turnUpdates) (backend.Raw, error) {
	ctx, params := p.Context(), p.params.rest
	if command, ok := s.ownCommand(params); ok {
		p.at.Release()
		return (&ownTurn{s, updates}).answer(ctx, command)
	}
	if len(s.budgets.all()) > 0 {
		p.at.Release() // the user may take a while
		goesOn, err := s.budgets.confirm(ctx, s.askBeforeTurn)
		if err != nil {
			return nil, err
		}
		if !goesOn {
			return overBudget(ctx, updates)
		}
	}
	s.adapter.takeSnapshots(ctx, s.storeID, s.unguarded)
	s.spending.BeginTurn()
	work := p.Start(s, params, updates)
	p.at.Release()
	if work == nil { // it has ended before
		s.spending.DropTurn()
		return nil, errors.New("the turn did not run")
	}
	return work()
}

// showPrompt shows the other viewers of s the prompt, whose turn begins.
func (p *prompted) showPrompt(s *session) {
	if s.viewers.Others(p.from) == 0 {
		return
	}
	s.viewers.mark(p.Context(), p.from, "turn", map[string]bool{"running": true})
	for _, u := range p.params.updates() {
		s.viewers.show(p.Context(), p.from, u)
	}
}
