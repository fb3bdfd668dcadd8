package acp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// leaveGrace is how long a turn may take to end once the client has left. Its prompt is
	// answered before the program ends.
	leaveGrace = time.Second
	// maxTurns is how many prompts of a session may be unanswered, unless the backend handles
	// overlapping turns: one that runs and one that waits for it.
	maxTurns = 2
)

// acceptPrompt serves session/prompt. On the read loop it takes the prompt's place in the queue, or
// rejects the prompt.
func (a *agent) acceptPrompt(ctx context.Context, r *jsonrpc.Request, from *agent) jsonrpc.Work {
	p, err := decodePrompt(r.Params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	if err := a.owner.take(turnSlot); err != nil {
		return jsonrpc.Fail(err)
	}
	request, leave := ctx, context.CancelCauseFunc(func(error) {})
	if a.lasting() {
		request, leave = a.lastingContext(ctx)
	}
	t := newTurn(request)
	finish := func() {
		t.answered()
		leave(nil)
		a.owner.release(turnSlot)
	}
	at, err := a.queues.promptTicket(p.id, t, a.turnLimit())
	if err != nil {
		finish()
		return jsonrpc.Fail(err)
	}
	finishQueued := func() {
		at.queue.answered(t)
		finish()
		at.release()
	}
	if a.lasting() {
		return a.promptLasting(ctx, r, from, at, t, p, leave, finishQueued)
	}
	r.BeforeResponse(t.decide)
	r.AfterResponse(finishQueued)
	return func() (json.RawMessage, error) { return a.prompt(at, t, p) }
}

// turnLimit returns how many turns of a session may be unanswered, 0 for any number.
func (a *agent) turnLimit() int {
	if a.init.overlappingTurns() {
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

func decodePrompt(raw json.RawMessage) (promptParams, error) {
	params := parseParams(raw, promptShape)
	if params.err != nil {
		return promptParams{}, params.err
	}
	var v strictjson.Violations
	p := promptParams{id: sessionstore.ID(v.Text(params.Field(protocol.SessionID))),
		rest: params.Without(protocol.SessionID)}
	for _, block := range v.Items(params.Field("prompt")) {
		if v.Full() {
			break
		}
		p.blocks = append(p.blocks, block.Raw())
		if object, ok := v.Object(block); ok && v.Text(object.Field("type")) == "text" {
			v.Text(object.Field("text"))
		}
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

// prompt runs a turn. It stores the prompt when its turn has come, releases the queue when the
// backend has the prompt, and returns when everything said in the turn is stored.
func (a *agent) prompt(at *ticket, t *turn, p promptParams) (json.RawMessage, error) {
	if err := a.initialized(t.ctx); err != nil {
		return nil, err
	}
	if err := at.acquire(t.ctx); err != nil {
		return nil, err
	}
	s, err := a.beginTurn(at, t, p)
	if err != nil {
		return nil, protocolError(err)
	}
	updates := &turnUpdates{session: s, turn: t}
	defer func() { s.endTurn(t) }() // also after a panic
	updates.watchLease(t)
	s.host.refresh(t.ctx)
	s.showNotice(t.ctx)
	o := t.await(a, func() (backend.Raw, error) {
		defer at.release() // also after a panic
		if command, ok := a.ownCommand(p.rest); ok {
			at.release()
			return a.answerOwn(t, updates, command)
		}
		work := t.start(s, p.rest, updates)
		at.release()
		if work == nil {
			return nil, errNotRun
		}
		return work()
	})
	t.over()
	s = updates.end()
	return s.answer(t, &o)
}

// errNotRun is the outcome of a turn that has ended before the backend got it.
var errNotRun = errors.New("the turn did not run")

// beginTurn stores the start of t when its turn has come. A backend without overlapping turns gets
// a prompt once all earlier prompts were answered; later requests do not wait for that. Every
// backend gets a prompt only after the response of a turn that is ending.
func (a *agent) beginTurn(at *ticket, t *turn, p promptParams) (*session, error) {
	q := at.queue
	overlaps := false
	_, mayReopen := parseOwnCommand(p.rest)
	t.exclusive = mayReopen || !a.init.overlappingTurns()
	turns := q.enter(t)
	// a lifecycle request between them and t may have failed before it ended them
	if !fits(turns, a.turnLimit()) {
		return nil, errTurnInProgress(q.id)
	}
	for _, before := range turns {
		if before.blocks() {
			if !t.exclusive && !before.exclusive {
				overlaps = true
				continue
			}
			t.exclusive = true // those behind it must not overtake it
			at.release()
		}
		if err := before.wait(t.ctx); err != nil {
			return nil, err
		}
		if t.request.Err() != nil { // the client has left, which ended both, but t may not know yet
			t.end(backend.ErrCancelled)
			return nil, t.cause()
		}
	}
	s := q.active()
	if s == nil {
		return nil, a.whyInactive(t.ctx, q.id)
	}
	return s, s.begin(t, p, overlaps)
}

// begin stores the start of a turn before the backend acts, and shows the client the title that a
// session gets from its first prompt. overlaps says that other turns are running.
func (s *session) begin(t *turn, p promptParams, overlaps bool) error {
	ctx := t.ctx
	s.record.restart(ctx)
	// An update that the client has seen may not be recorded yet. It comes before the prompt in the
	// history too.
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	s.endUpdate()
	if err := s.record.current().Flush(ctx); err != nil {
		return err
	}
	title := ""
	if !s.titled.Load() {
		title = p.title()
	}
	err := s.write(func(l sessionstore.Lease) (err error) {
		t.number, err = s.agent.options.Store.BeginTurn(ctx, l,
			sessionstore.Turn{Prompt: p.updates(), Title: title, Overlaps: overlaps})
		return err
	})
	if err != nil {
		s.failed(err)
		return err
	}
	if title != "" {
		s.setTitle(ctx, title)
	}
	return nil
}

// answer stores what was said in the turn and returns the response. What is not stored is an error,
// even if the agent completed the turn: a client may rely on every turn that ended well. Only a
// cancelled turn stays one, which promises nothing. If another process has opened or deleted the
// session, the user is also told so.
func (s *session) answer(t *turn, o *outcome) (json.RawMessage, error) {
	if o.err == nil && stopReason(*o) == "" {
		*o = outcome{err: errors.New("the agent answered the prompt without a stop reason")}
	}
	completed := o.err == nil && stopReason(*o) != stopCancelled
	if t.isCancelled() {
		*o = outcome{result: cancelledResult(o.result)}
	} else if !completed && errors.Is(t.cause(), errTurnFull) {
		*o = outcome{result: backend.Stopped(sdk.StopReasonMaxTurnRequests)}
		s.showTurnFull(t)
	} else if cause := t.cause(); cause != nil {
		o.err = cause
	}
	err := s.endTurn(t)
	if gone(err) {
		s.tellGone(t.ctx, err)
	}
	if err != nil && o.err == nil && !t.isCancelled() {
		o.err = err // it may also have ended the turn, so the turn's cause says nothing
	}
	return o.result, protocolError(o.err)
}

// showTurnFull tells the user why a turn was stopped that has sent too much.
func (s *session) showTurnFull(t *turn) {
	ctx, cancel := commitContext(t.ctx)
	defer cancel()
	limit := text.Size(s.agent.options.tuning.TurnBytes)
	err := s.update(ctx, backend.Note("\n\nStopped, because this turn has reached the limit of "+
		limit+" for what one turn may say and do. Send another message to continue."))
	if err != nil {
		s.agent.log.Warn("cannot say why a turn was stopped", "session", s.id, "error", err)
	}
}

// endTurn stores the end of t, once.
func (s *session) endTurn(t *turn) error {
	if !t.beginCommit() {
		return nil
	}
	ctx, cancel := commitContext(t.ctx)
	defer cancel()
	err := s.record.current().Flush(ctx)
	if err == nil {
		err = s.write(func(l sessionstore.Lease) error {
			return s.agent.options.Store.EndTurn(ctx, l, t.number)
		})
	}
	if err != nil {
		s.addUnended(t.number)
		s.failed(err)
	}
	return err
}

// cancelledResult returns result with the stop reason of a cancelled turn.
func cancelledResult(result json.RawMessage) json.RawMessage {
	return strictjson.Set(result, "stopReason", quote(string(stopCancelled)))
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
