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
//     when nothing can be stored, or by turnUpdates with [turns.ErrFull]. A backend that does not
//     end the turn then is waited for only for a while (Turn.Run).
//   - begunTurn.finish stores what was said and how the turn ended (Turn.Finish).
//   - prompted.serve waits until the client has room for the response, unless others wait for the
//     turn.
//   - While the response waits, a session/cancel still changes it (Turn.Decide).
//   - prompted.conclude tells the other viewers, and lets the next turn begin.

// begunTurn is a turn whose start is stored.
type begunTurn struct {
	*prompted
	session *session // in which it began; a command may open that again
	number  int64    // in the store
	title   string   // that the prompt has given the session, or ""
	updates *turnUpdates
}

// run runs the turn, and stores how it ended. From begin until the turn has started, its ticket
// holds the queue, unless the turn had to wait for others (Ticket.AwaitTurn).
func (t *begunTurn) run() {
	a := t.session.adapter
	t.from.observe(TurnEvent{Session: t.session.id, Running: true})
	t.finish(t.Run(a.tasks, a.options.tuning.CancelGrace, func() (backend.Raw, error) {
		return t.startAndRelease()()
	}))
}

// startAndRelease is start, and lets others have the queue then.
func (t *begunTurn) startAndRelease() backend.Work {
	defer t.at.Release() // also after a panic
	return t.start()
}

// start prepares the session, gives its backend the prompt, and returns the rest of the turn. A
// command of the adapter is answered in the rest, and so is a question before the prompt.
func (t *begunTurn) start() backend.Work {
	ctx, s := t.Context(), t.session
	s.watchLease(ctx)
	s.Permits().ForgetAsked()
	s.catalog.refresh(ctx)
	s.showNotice(ctx)
	if command, ok := s.ownCommand(t.params.rest); ok {
		return func() (backend.Raw, error) { return (&ownTurn{s, t.updates}).run(ctx, command) }
	}
	if len(s.budgets.all()) == 0 {
		return t.prompt()
	}
	return func() (backend.Raw, error) {
		if !s.budgets.confirm(ctx, s.askBeforeTurn) {
			return overBudget(ctx, t.updates)
		}
		return t.prompt()()
	}
}

// prompt gives the backend the prompt.
func (t *begunTurn) prompt() backend.Work {
	ctx, s := t.Context(), t.session
	s.adapter.takeSnapshots(ctx, s.storeID, s.unguarded)
	return t.Start(s, func(b backend.Session) backend.Work {
		s.spending.BeginTurn()
		return b.Prompt(ctx, t.params.rest, t.updates)
	})
}

// finish stores what was said in the turn, and how it has ended. o has what came of it in the
// backend. What is not stored is an error, even if the agent completed the turn: a client may rely
// on every turn that ended well. Only a cancelled turn stays one, which promises nothing. If
// another process has opened or deleted the session, the user is also told so.
func (t *begunTurn) finish(o turns.Outcome) {
	s := t.updates.end() // a command may have opened it again
	if t.StartedIn(s) {
		o.Result = t.endSpending(s, o.Result)
	}
	o = t.Finish(o)
	if o.StopReason() == sdk.StopReasonMaxTurnRequests && errors.Is(t.Cause(), turns.ErrFull) {
		s.showFull(t.Context())
	}
	if err := t.storeEnd(s, o); err != nil {
		o = t.Fail(err)
		if record.Gone(err) {
			s.viewers.tellGone(t.Context(), err, "The rest of this turn was not saved.")
		}
	}
	t.from.observe(TurnEvent{s.id, false, o.StopReason(), protocolError(o.Err)})
}

// endSpending stores what was used in the turn, which ran in s, and tells the user which budgets it
// has used up. It returns the response with what the turn and the session have cost.
func (t *begunTurn) endSpending(s *session, result backend.Raw) backend.Raw {
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	charges, session := s.spending.EndTurn(ctx, result)
	t.from.observeUsage(s.id, charges)
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
func (t *begunTurn) storeEnd(s *session, o turns.Outcome) error {
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	store, taken := s.adapter.options.Store, false
	refusal, ok := errors.AsType[*jsonrpc.Error](o.Err)
	err := s.record.Flush(ctx)
	if err == nil {
		err = s.record.Write(func(l sessionstore.Lease) (err error) {
			if ok && refusal.Code == jsonrpc.CodeInvalidParams {
				taken, err = store.TakeBackTurn(ctx, l, t.number,
					sessionstore.Turn{Prompt: t.params.updates(), Title: t.title})
			}
			if taken || err != nil {
				return err
			}
			return store.EndTurn(ctx, l, t.number, endOf(o))
		})
	}
	if err != nil {
		s.failed(err)
	}
	if taken && t.title != "" {
		stored, err := store.Get(ctx, s.storeID)
		if err == nil && stored.Title == "" {
			s.transcript.rename("")
		}
	}
	return err
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
