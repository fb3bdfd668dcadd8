package acp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// How a turn ends:
//
//   - The backend is done, or the turn is ended early, with a cause (turns.End): by session/cancel
//     and requests that close or replace the session as [backend.ErrCancelled], by session.failed
//     when nothing can be stored, or by turnUpdates with errTurnFull. A backend that does not end
//     the turn then is waited for only for a while (Turn.Await).
//   - finishTurn stores what was said and how the turn ended, and decides the answer.
//   - serve waits until the client has room for the response, unless others wait for the turn.
//   - While the response waits, a session/cancel still changes it (Turn.Decide).
//   - conclude tells the other viewers, and lets the next turn begin.

// outcome is how a turn ended: the result of the prompt, or an error.
type outcome struct {
	result  backend.Raw
	err     error
	session *session // in which the turn ended, nil if it did not begin
}

// stopCancelled is the stop reason of a cancelled turn.
const stopCancelled = sdk.StopReasonCancelled

// stopReason returns the stop reason of a prompt, "" if it failed or its result has none.
func (o outcome) stopReason() sdk.StopReason {
	if o.err != nil {
		return ""
	}
	return sdk.StopReason(strictjson.FindText(o.result, "stopReason"))
}

// serve runs the turn of r, and waits for its end as long as the client is connected. ctx is the
// context of r.
func (p *prompted) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	done := make(chan outcome, 1)
	p.from.adapter.tasks.Go(func() {
		o := outcome{err: tasks.ErrPanicked}
		defer func() { done <- o }()
		o = p.run()
	})
	select {
	case o := <-done:
		return p.respond(r, p.awaitRoom(ctx, o))
	case <-ctx.Done():
	}
	switch {
	case !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed): // the client has cancelled the request
	case p.from.graceNow() == 0:
		p.leave(jsonrpc.ErrClosed)
	case p.Cause() == nil:
		p.from.adapter.tasks.Go(func() { p.conclude(<-done) })
		return nil, jsonrpc.ErrClosed
	}
	return p.respond(r, <-done)
}

// awaitRoom waits until the client has room for the response. If it does not read while others have
// the session open, the turn ends at once: they do not wait for it.
func (p *prompted) awaitRoom(ctx context.Context, o outcome) outcome {
	if o.session != nil {
		o.session.viewers.Settle(ctx, p.from, func() { o = p.conclude(o) })
	}
	return o
}

// respond returns the response. It is decided when it is sent, and the turn ends then.
func (p *prompted) respond(r *jsonrpc.Request, o outcome) (json.RawMessage, error) {
	r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
		o.result, o.err = p.Decide(result, err)
		return o.result, o.err
	})
	r.AfterResponse(func() { p.conclude(o) })
	return o.result, o.err
}

// conclude decides how the turn ended. The first call shows that to the viewers that get no
// response, and lets the next turn begin.
func (p *prompted) conclude(o outcome) outcome {
	o.result, o.err = p.Decide(o.result, o.err)
	p.over.Do(func() {
		defer p.free()
		p.showEnd(o)
	})
	return o
}

// showEnd shows the other viewers how the turn ended.
func (p *prompted) showEnd(o outcome) {
	s := o.session
	if s == nil || s.viewers.Others(p.from) == 0 {
		return
	}
	ended := map[string]any{"stopReason": o.stopReason()}
	if o.err != nil {
		ended = map[string]any{"error": o.err.Error()}
	}
	ctx, cancel := tasks.Commit(s.adapter.base)
	defer cancel()
	_ = s.viewers.shown.With(ctx, func(*shown) error {
		s.viewers.mark(ctx, p.from, "turn", ended)
		return nil
	})
}

// free frees what the prompt holds.
func (p *prompted) free() {
	p.at.Answered()
	p.unwait()
	p.leave(nil)
	p.from.home.owner.release(turnSlot, p.from.adapter)
}

// finishTurn stores what was said in the turn, and returns the answer. result and err are what came
// of it in the backend. What is not stored is an error, even if the agent completed the turn: a
// client may rely on every turn that ended well. Only a cancelled turn stays one, which promises
// nothing. If another process has opened or deleted the session, the user is also told so.
func (p *prompted) finishTurn(u *turnUpdates, result backend.Raw, err error) outcome {
	p.Over()
	s := u.end() // a command may have opened it again
	if p.StartedIn(s) {
		result = p.endSpending(s, result)
	}
	o := p.outcomeIn(s, result, err)
	err = p.storeEnd(o)
	if record.Gone(err) {
		s.viewers.tellGone(p.Context(), err, "The rest of this turn was not saved.")
	}
	if err != nil && o.err == nil && !p.IsCancelled() {
		o.err = err // it may also have ended the turn, so the turn's cause says nothing
	}
	o.err = protocolError(o.err)
	p.from.observe(TurnEvent{s.id, false, o.stopReason(), o.err})
	return o
}

// endSpending stores what was used in the turn, which ran in s, and tells the user which budgets it
// has used up. It returns the response with what the turn and the session have cost.
func (p *prompted) endSpending(s *session, result backend.Raw) backend.Raw {
	ctx, cancel := tasks.Commit(p.Context())
	defer cancel()
	charges, session := s.spending.EndTurn(ctx, result)
	p.from.observeUsage(s.id, charges)
	turn := metering.Sum(charges, sessionstore.CostMeter)
	if len(turn) > 0 {
		for _, note := range s.budgets.usedUp(ctx, turn) {
			if err := s.transcript.send(ctx, note, showFirst); err != nil {
				s.adapter.log.Debug("notice not sent", "session", s.id, "error", err)
			}
		}
	}
	if len(session) == 0 || !strictjson.IsObject(result) {
		return result
	}
	return withMeta(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}

// outcomeIn returns how the turn ended in s, where the backend had a result or an error.
func (p *prompted) outcomeIn(s *session, result backend.Raw, err error) outcome {
	o := outcome{result: result, err: err, session: s}
	if err == nil && o.stopReason() == "" {
		o.result = nil
		o.err = errors.New("the agent answered the prompt without a stop reason")
	}
	completed, cause := o.err == nil && o.stopReason() != stopCancelled, p.Cause()
	switch {
	case p.IsCancelled():
		o.result, o.err = turns.Cancelled(o.result), nil
	case !completed && errors.Is(cause, errTurnFull):
		s.showFull(p.Context())
		o.result, o.err = backend.Stopped(sdk.StopReasonMaxTurnRequests), nil
	case cause != nil:
		o.err = cause
	}
	return o
}

// showFull tells the user why a turn was stopped that has sent too much.
func (s *session) showFull(ctx context.Context) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	limit := text.Size(s.adapter.options.tuning.TurnBytes)
	full := backend.Note("\n\nStopped, because this turn has reached the limit of " + limit +
		" for one turn. Send another message to continue.")
	if err := s.transcript.send(ctx, full, showFirst); err != nil {
		s.adapter.log.Warn("cannot say why a turn was stopped", "session", s.id, "error", err)
	}
}

// storeEnd stores the end of the turn, after its last updates. Of a prompt that was refused nothing
// remains, unless more was stored since the turn began.
func (p *prompted) storeEnd(o outcome) error {
	ctx, cancel := tasks.Commit(p.Context())
	defer cancel()
	s := o.session
	store, taken := s.adapter.options.Store, false
	refusal, ok := errors.AsType[*jsonrpc.Error](o.err)
	err := s.record.Flush(ctx)
	if err == nil {
		err = s.record.Write(func(l sessionstore.Lease) (err error) {
			if ok && refusal.Code == jsonrpc.CodeInvalidParams {
				taken, err = store.TakeBackTurn(ctx, l, p.number,
					sessionstore.Turn{Prompt: p.params.updates(), Title: p.title})
			}
			if taken || err != nil {
				return err
			}
			return store.EndTurn(ctx, l, p.number, o.record())
		})
	}
	if err != nil {
		s.failed(err)
	}
	if taken && p.title != "" {
		stored, err := store.Get(ctx, s.storeID)
		if err == nil && stored.Title == "" {
			s.transcript.rename("")
		}
	}
	return err
}

// record returns what the history says of how a turn ended.
func (o outcome) record() sessionstore.Update {
	if o.err == nil {
		return sessionstore.TurnEnded(string(o.stopReason()), "")
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
