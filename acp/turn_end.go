package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A turn that is ended early has a cause (turns.End): [backend.ErrCancelled] of session/cancel and
// of requests that close or replace the session, [turns.ErrFull] of turnUpdates, or an error of the
// store, of session.failed. While the response waits until the client has room for it, a
// session/cancel still changes it (Turn.Decide).

// end stores how the turn has ended in s. It came to this in the backend.
func (p *promptRequest) end(s *session, outcome turns.Outcome) {
	if p.turn.StartedIn(s) {
		outcome.Result = p.endSpending(s, outcome.Result)
	}
	p.turn.Finish(outcome)
	p.showFull(s)
	p.storeEnd(s)
	o := p.turn.Outcome()
	p.from.observe(TurnEvent{s.id, false, o.StopReason(), protocolError(o.Err)})
}

// endSpending stores what was used in the turn, which ran in s, and tells the user which budgets it
// has used up. It returns the response with what the turn and the session have cost.
func (p *promptRequest) endSpending(s *session, result backend.Raw) backend.Raw {
	ctx, cancel := tasks.Commit(p.turn.Context())
	defer cancel()
	charges, session := s.spending.EndTurn(ctx, result)
	p.from.observeUsage(s.id, charges)
	turn := metering.Sum(charges, sessionstore.CostMeter)
	if len(turn) > 0 {
		_ = s.adapter.tasks.Guard("budgets", func() error {
			for _, note := range s.budgets.UsedUp(ctx, turn) {
				if err := s.transcript.Send(ctx, note, transcript.ShowFirst); err != nil {
					s.adapter.log.Debug("notice not sent", "session", s.id, "error", err)
				}
			}
			return nil
		})
	}
	if len(session) == 0 || !strictjson.IsObject(result) {
		return result
	}
	return protocol.SetOurs(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}

// showFull tells the user why the turn was stopped, if it has sent too much.
func (p *promptRequest) showFull(s *session) {
	if p.turn.Outcome().StopReason() != sdk.StopReasonMaxTurnRequests ||
		!errors.Is(p.turn.Cause(), turns.ErrFull) {
		return
	}
	ctx, cancel := tasks.Commit(p.turn.Context())
	defer cancel()
	limit := text.Size(s.adapter.options.tuning.TurnBytes)
	full := backend.Note("\n\nStopped, because this turn has reached the limit of " + limit +
		" for one turn. Send another message to continue.")
	if err := s.transcript.Send(ctx, full, transcript.ShowFirst); err != nil {
		s.adapter.log.Warn("cannot say why a turn was stopped", "session", s.id, "error", err)
	}
}

// storeEnd stores what was said in the turn, and how it has ended. Of a prompt that was refused
// nothing remains, unless more was stored since the turn began. What is not stored fails the turn,
// even if the agent completed it: a client may rely on every turn that ended well. If another
// process has opened or deleted the session, the user is also told so.
func (p *promptRequest) storeEnd(s *session) {
	ctx, cancel := tasks.Commit(p.turn.Context())
	defer cancel()
	o, store, taken := p.turn.Outcome(), s.adapter.options.Store, false
	refusal, ok := errors.AsType[*jsonrpc.Error](o.Err)
	err := s.record.Flush(ctx)
	if err == nil {
		err = s.record.Write(func(l sessionstore.Lease) (err error) {
			if ok && refusal.Code == jsonrpc.CodeInvalidParams {
				taken, err = store.TakeBackTurn(ctx, l, p.number, p.stored)
			}
			if taken || err != nil {
				return err
			}
			return store.EndTurn(ctx, l, p.number, endOf(o))
		})
	}
	if err != nil {
		s.failed(err)
		p.turn.Fail(err)
	}
	if record.Gone(err) {
		s.viewers.ShowGone(ctx, err, "The rest of this turn was not saved.")
	}
	if taken && p.stored.Title != "" {
		stored, err := store.Get(ctx, s.storeID)
		if err == nil && stored.Title == "" {
			s.transcript.Rename(ctx, "")
		}
	}
}

// endOf returns what the history says of how a turn ended.
func endOf(o turns.Outcome) sessionstore.Update {
	if o.Err == nil {
		return sessionstore.TurnEnded(string(o.StopReason()), "")
	}
	failure := protocolError(o.Err)
	words := failure.Error()
	if wire, ok := errors.AsType[*jsonrpc.Error](failure); ok {
		var details string
		if words = wire.Message; json.Unmarshal(wire.Data, &details) == nil && details != "" {
			words += ": " + details
		}
	}
	return sessionstore.TurnEnded("", words)
}

// answer returns the outcome as far as it is known. r is answered with the one that is decided once
// the client has room for the response. A client that does not read holds up no others that have
// the session open.
func (p *promptRequest) answer(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	conclude := sync.OnceFunc(p.conclude)
	if p.audience != nil {
		p.audience.Settle(ctx, p.from, conclude)
	}
	r.BeforeResponse(func(json.RawMessage, error) (json.RawMessage, error) {
		o := p.decide()
		return o.Result, o.Err
	})
	r.AfterResponse(conclude)
	o := p.turn.Outcome()
	return o.Result, protocolError(o.Err)
}

// conclude shows those who saw the turn begin how it has ended, except the client that gets the
// response, and frees what the prompt holds. The next turn may begin then. It is called once: after
// the response, before one that the client does not read, or if the client has left.
func (p *promptRequest) conclude() {
	defer p.release()
	defer p.ticket.Answered()
	o := p.decide()
	if p.audience == nil || p.audience.Others(p.from) == 0 {
		return
	}
	ended := map[string]any{"stopReason": o.StopReason()}
	if o.Err != nil {
		ended = map[string]any{"error": o.Err.Error()}
	}
	ctx, cancel := tasks.Commit(p.turn.Context())
	defer cancel()
	_ = p.audience.Shown.With(ctx, func(*transcript.Shown) error {
		p.audience.Mark(ctx, p.from, "turn", ended)
		return nil
	})
}

// decide decides how the prompt is answered, and returns what clients are told.
func (p *promptRequest) decide() turns.Outcome {
	o := p.turn.Decide()
	o.Err = p.from.withoutStorePath(protocolError(o.Err))
	return o
}
