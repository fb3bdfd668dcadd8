package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
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
	*turns.Turn
	from   *connection
	params promptParams
	at     *ticket
	leave  context.CancelCauseFunc // ends the context of the request
	unwait func() bool             // keeps the end of Serve from calling leave

	session *session  // in which the turn has run, or nil
	ended   sync.Once // see end
}

// acceptPrompt serves session/prompt. On the read loop it takes the prompt's place in the queue, or
// rejects the prompt.
func (c *connection) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	params, err := decodePrompt(r.Params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	limit := c.agent.turnLimit()
	if q := c.home.queues.Find(params.id); q != nil {
		if s := q.Active(); s != nil { // read once: the session may be closed meanwhile
			if s.viewers.Has(c) {
				params.viewed = s
			} else if !q.IsOpening(c) {
				return jsonrpc.Fail(errNotActive(q.ID))
			}
			limit = s.agent.turnLimit()
		}
	}
	if err := c.home.owner.take(turnSlot, c.agent); err != nil {
		return jsonrpc.Fail(err)
	}
	request, leave := c.agent.requestContext(ctx)
	p := &prompted{Turn: turns.New(request, c), from: c, params: params, leave: leave,
		unwait: context.AfterFunc(c.serving, func() { leave(jsonrpc.ErrClosed) })}
	if p.at, err = c.home.queues.PromptTicket(params.id, p.Turn, limit); err != nil {
		p.finish()
		return jsonrpc.Fail(protocolError(err))
	}
	return func() (json.RawMessage, error) { return p.serve(ctx, r) }
}

// serve runs the turn of r, and waits for its end as long as the client is connected. ctx is the
// context of r.
func (p *prompted) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	done := make(chan outcome, 1)
	p.from.agent.tasks.Go(func() {
		o := outcome{err: tasks.ErrPanicked}
		defer func() { done <- o }()
		o.result, o.err = p.run()
	})
	select {
	case o := <-done:
		return p.respond(r, p.settle(ctx, o))
	case <-ctx.Done():
	}
	switch {
	case !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed): // the client has cancelled the request
	case p.from.graceNow() == 0:
		p.leave(jsonrpc.ErrClosed)
	case p.Cause() == nil:
		p.from.agent.tasks.Go(func() { p.end(<-done) })
		return nil, jsonrpc.ErrClosed
	}
	return p.respond(r, <-done)
}

// settle waits until the client has room for the response. If it does not read while others have
// the session open, the turn ends at once: they do not wait for it.
func (p *prompted) settle(ctx context.Context, o outcome) outcome {
	if p.session == nil || p.session.viewers.Settle(ctx, p.from, true) {
		return o
	}
	o = p.end(o)
	p.session.viewers.Settle(ctx, p.from, false)
	return o
}

// respond returns the response. It is decided when it is sent, and the turn ends then.
func (p *prompted) respond(r *jsonrpc.Request, o outcome) (json.RawMessage, error) {
	r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
		o.result, o.err = p.Decide(result, err)
		return o.result, o.err
	})
	r.AfterResponse(func() { p.end(o) })
	return o.result, o.err
}

// end decides how the turn ended. Once, it tells that to the viewers that get no response, and lets
// the next turn begin.
func (p *prompted) end(o outcome) outcome {
	o.result, o.err = p.Decide(o.result, o.err)
	p.ended.Do(func() {
		defer p.finish()
		p.showEnd(o)
	})
	return o
}

// showEnd shows the other viewers how the turn ended.
func (p *prompted) showEnd(o outcome) {
	s := p.session
	if s == nil || s.viewers.Others(p.from) == 0 {
		return
	}
	ended := map[string]any{"stopReason": stopReason(o)}
	if o.err != nil {
		ended = map[string]any{"error": o.err.Error()}
	}
	ctx, cancel := tasks.Commit(s.agent.base)
	defer cancel()
	_ = s.viewers.shown.With(ctx, func(*shown) error {
		s.viewers.mark(ctx, p.from, map[string]any{"turn": ended})
		return nil
	})
}

// finish frees what the prompt holds. A prompt that the queue has rejected has no ticket.
func (p *prompted) finish() {
	if p.at != nil {
		defer p.at.Release()
		p.at.Queue.Answered(p.Turn)
	}
	p.unwait()
	p.Answered()
	p.leave(nil)
	p.from.home.owner.release(turnSlot, p.from.agent)
}

// turnLimit returns how many turns of a session may be unanswered, 0 for any number.
func (a *agent) turnLimit() int {
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
	viewed *session    // that the client had open when it sent them, or nil
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

// run runs the turn. It stores the prompt when its turn has come, releases the queue when the
// backend has the prompt, and returns when everything said in the turn is stored.
func (p *prompted) run() (json.RawMessage, error) {
	t, at := p.Turn, p.at
	if err := p.from.initialized(t.Context()); err != nil {
		return nil, err
	}
	if err := at.Acquire(t.Context()); err != nil {
		return nil, err
	}
	s, err := p.begin()
	if err != nil {
		return nil, protocolError(err)
	}
	a := s.agent
	p.session = s
	p.from.observe(TurnEvent{Session: s.id, Running: true})
	updates := newTurnUpdates(t, s)
	defer func() { p.session.endTurn(t) }() // also after a panic
	s.watchLease(t.Context())
	s.refresh(t.Context())
	s.showNotice(t.Context())
	var o outcome
	o.result, o.err = t.Await(a.tasks.Go, a.options.tuning.CancelGrace,
		func() (result backend.Raw, err error) {
			defer at.Release() // also after a panic
			err = a.tasks.Guard("prompt", func() (err error) {
				result, err = s.runTurn(at, t, updates, p.params)
				return err
			})
			return result, err
		})
	t.Over()
	s = updates.end() // a command may have opened it again
	p.session = s
	if updates.metered.Load() {
		o.result = s.endSpending(t, p.from, o.result)
	}
	result, err := s.answer(t, p.params, &o)
	p.from.observe(TurnEvent{s.id, false, stopReason(outcome{result, err}), err})
	return result, err
}

// runTurn answers a command of the adapter, or has the backend answer the prompt. It releases the
// ticket once the backend has the prompt.
func (s *session) runTurn(
	at *ticket, t *turns.Turn, updates *turnUpdates, p promptParams,
) (backend.Raw, error) {
	if command, ok := s.ownCommand(p.rest); ok {
		at.Release()
		return s.answerOwn(t, updates, command)
	}
	if budgets := s.budgets(); len(budgets) > 0 {
		at.Release() // the user may take a while
		if err := s.askToExceed(t.Context(), budgets); errors.Is(err, errBudget) {
			return s.overBudget(t.Context(), updates)
		} else if err != nil {
			return nil, err
		}
	}
	s.takeSnapshots(t.Context())
	s.spending.BeginTurn()
	work := t.Start(s, p.rest, updates)
	at.Release()
	if work == nil {
		s.spending.DropTurn()
		return nil, errNotRun
	}
	updates.metered.Store(true)
	return work()
}

// errNotRun is the outcome of a turn that has ended before the backend got it.
var errNotRun = errors.New("the turn did not run")

// begin stores the start of the turn when its turn has come, in the session that the client has
// open, or had when it sent the prompt. A backend without overlapping turns gets a prompt once all
// earlier prompts were answered, and so does an agent whose session a command may open again.
func (p *prompted) begin() (*session, error) {
	q, ctx := p.at.Queue, p.Context()
	s := q.Active()
	if s == nil || s != p.params.viewed && !s.viewers.Has(p.from) {
		return nil, p.from.agent.whyInactive(ctx, q.ID)
	}
	_, mayReopen := parseOwnCommand(p.params.rest)
	p.Exclusive = mayReopen || !s.agent.info().OverlappingTurns
	overlaps, err := p.at.Begin(s.agent.turnLimit())
	if err != nil {
		return nil, err
	}
	if p.from.endsTurns() { // the turn before may have been the first to learn it
		p.End(backend.ErrCancelled)
		return nil, p.Cause()
	}
	if s = q.Active(); s == nil { // it was closed meanwhile
		return nil, p.from.agent.whyInactive(ctx, q.ID)
	}
	return s, s.begin(p.Turn, p.from, p.params, overlaps)
}

// begin stores the start of a turn before the backend acts, and shows the client the title that a
// session gets from its first prompt. overlaps says that other turns are running.
func (s *session) begin(
	t *turns.Turn, from *connection, p promptParams, overlaps bool,
) error {
	s.record.Restart(t.Context())
	// An update that the client has seen may not be recorded yet. It comes before the prompt in the
	// history too.
	return s.viewers.shown.With(t.Context(), func(*shown) error {
		return s.storePrompt(t, from, p, overlaps)
	})
}

// storePrompt is begin while no other update is being shown.
func (s *session) storePrompt(
	t *turns.Turn, from *connection, p promptParams, overlaps bool,
) error {
	ctx := t.Context()
	if err := s.record.Flush(ctx); err != nil {
		return err
	}
	title := ""
	if !s.titled.Load() {
		title = p.title()
	}
	err := s.write(func(l sessionstore.Lease) (err error) {
		// The turn must not end while it is open whether the prompt is stored: it is shown if it
		// is.
		ctx, cancel := tasks.Commit(ctx)
		defer cancel()
		t.Number, err = s.agent.options.Store.BeginTurn(ctx, l,
			sessionstore.Turn{Prompt: p.updates(), Title: title, Overlaps: overlaps})
		return err
	})
	if err != nil {
		s.failed(err)
		return err
	}
	s.showPrompt(ctx, from, p)
	if t.Title = title; title != "" {
		s.setTitle(ctx, title)
	}
	return nil
}

// showPrompt shows the other viewers a prompt whose turn begins.
func (s *session) showPrompt(ctx context.Context, from *connection, p promptParams) {
	v := s.viewers
	if v.Others(from) == 0 {
		return
	}
	v.mark(ctx, from, map[string]any{"turn": map[string]bool{"running": true}})
	for _, u := range p.updates() {
		v.showStored(ctx, from, u)
	}
}

// answer stores what was said in the turn and returns the response. What is not stored is an error,
// even if the agent completed the turn: a client may rely on every turn that ended well. Only a
// cancelled turn stays one, which promises nothing. If another process has opened or deleted the
// session, the user is also told so.
func (s *session) answer(t *turns.Turn, p promptParams, o *outcome) (json.RawMessage, error) {
	if o.err == nil && stopReason(*o) == "" {
		*o = outcome{err: errors.New("the agent answered the prompt without a stop reason")}
	}
	completed := o.err == nil && stopReason(*o) != stopCancelled
	if t.IsCancelled() {
		*o = outcome{result: turns.Cancelled(o.result)}
	} else if !completed && errors.Is(t.Cause(), errTurnFull) {
		*o = outcome{result: backend.Stopped(sdk.StopReasonMaxTurnRequests)}
		s.showTurnFull(t)
	} else if cause := t.Cause(); cause != nil {
		o.err = cause
	}
	var err error
	refusal, ok := errors.AsType[*jsonrpc.Error](o.err)
	if ok && refusal.Code == jsonrpc.CodeInvalidParams {
		err = s.refuseTurn(t, p, turnEnd(o))
	} else {
		err = s.endTurn(t, turnEnd(o))
	}
	if gone(err) {
		s.tellGone(t.Context(), err, "The rest of this turn was not saved.")
	}
	if err != nil && o.err == nil && !t.IsCancelled() {
		o.err = err // it may also have ended the turn, so the turn's cause says nothing
	}
	return o.result, protocolError(o.err)
}

// showTurnFull tells the user why a turn was stopped that has sent too much.
func (s *session) showTurnFull(t *turns.Turn) {
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	limit := text.Size(s.agent.options.tuning.TurnBytes)
	err := s.update(ctx, backend.Note("\n\nStopped, because this turn has reached the limit of "+
		limit+" for one turn. Send another message to continue."))
	if err != nil {
		s.agent.log.Warn("cannot say why a turn was stopped", "session", s.id, "error", err)
	}
}

// endTurn stores the end of t, once, with its last updates.
func (s *session) endTurn(t *turns.Turn, last ...sessionstore.Update) error {
	return s.commitTurn(t, func(ctx context.Context, l sessionstore.Lease) error {
		return s.agent.options.Store.EndTurn(ctx, l, t.Number, last...)
	})
}

// refuseTurn stores nothing of t, whose prompt was refused. If more than the prompt was stored
// since it began, refuseTurn stores the end of t.
func (s *session) refuseTurn(t *turns.Turn, p promptParams, end sessionstore.Update) error {
	store, begun := s.agent.options.Store, sessionstore.Turn{Prompt: p.updates(), Title: t.Title}
	taken := false
	err := s.commitTurn(t, func(ctx context.Context, l sessionstore.Lease) (err error) {
		taken, err = store.TakeBackTurn(ctx, l, t.Number, begun)
		if err == nil && !taken {
			err = store.EndTurn(ctx, l, t.Number, end)
		}
		return err
	})
	if taken && t.Title != "" {
		ctx, cancel := tasks.Commit(t.Context())
		defer cancel()
		stored, err := store.Get(ctx, s.storeID)
		if err == nil && stored.Title == "" {
			s.setTitle(ctx, "")
		}
	}
	return err
}

// commitTurn stores the end of t with end, once, after its last updates.
func (s *session) commitTurn(
	t *turns.Turn, end func(context.Context, sessionstore.Lease) error,
) error {
	if !t.BeginCommit() {
		return nil
	}
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	err := s.record.Flush(ctx)
	if err == nil {
		err = s.write(func(l sessionstore.Lease) error { return end(ctx, l) })
	}
	if err != nil {
		s.withState(func() { s.unended = append(s.unended, t.Number) })
		s.failed(err)
	}
	return err
}

// turnEnd returns the record of how a turn ended.
func turnEnd(o *outcome) sessionstore.Update {
	if o.err == nil {
		return sessionstore.TurnEnded(string(stopReason(*o)), "")
	}
	failure := protocolError(o.err)
	words := failure.Error()
	if wire, ok := errors.AsType[*jsonrpc.Error](failure); ok {
		var details string
		if words = wire.Message; json.Unmarshal(wire.Data, &details) == nil && details != "" {
			words += ": " + details
		}
	}
	return sessionstore.TurnEnded("", words)
}

// stopCancelled is the stop reason of a cancelled turn.
const stopCancelled = sdk.StopReasonCancelled

// outcome holds the results of a backend's Work.
type outcome struct {
	result backend.Raw
	err    error
}

// stopReason returns the stop reason of a prompt, "" if it failed or its result has none.
func stopReason(o outcome) sdk.StopReason {
	if o.err != nil {
		return ""
	}
	var reason sdk.StopReason
	if json.Unmarshal(members(o.result)["stopReason"], &reason) != nil {
		return ""
	}
	return reason
}
