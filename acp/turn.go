package acp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/session/budget"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// A turn that is ended early has a cause (turns.End): [backend.ErrCancelled] of session/cancel and of
// requests that close or replace the session, [turns.ErrFull] of turnUpdates, or an error of the
// store, of session.failed. While the response waits until the client has room for it, a
// session/cancel still changes it (Turn.Decide).

// run runs the turn, from its prompt's place in the queue until its end is stored. An error means
// that the turn did not begin. From awaitTurn until start has returned, the ticket holds the queue,
// unless the turn had to wait for others (Ticket.AwaitTurn).
func (p *prompted) run() error {
	s, overlaps, err := p.awaitTurn()
	if err != nil {
		return err
	}
	if err := p.storeStart(s, overlaps); err != nil {
		return err
	}
	p.from.observe(TurnEvent{Session: s.id, Running: true})
	said := &turnUpdates{turn: p.turn, said: tasks.NewMutex(saidInTurn{session: s})}
	came := p.turn.Run(s.adapter.tasks, s.adapter.options.tuning.CancelGrace,
		func() (backend.Raw, error) { return p.start(s, said)() })
	s = said.end() // a command may have opened the session again
	if p.turn.StartedIn(s) {
		came.Result = p.endSpending(s, came.Result)
	}
	p.turn.Finish(came)
	p.showFull(s)
	p.storeEnd(s)
	o := p.turn.Outcome()
	p.from.observe(TurnEvent{s.id, false, o.StopReason(), protocolError(o.Err)})
	return nil
}

// awaitTurn waits until the turn may run, and returns its session: the one that the client has
// open, or had when it sent the prompt. A backend without overlapping turns gets a prompt once all
// earlier prompts were answered, and so does an agent whose session a command may open again.
// overlaps says that other turns may be running.
func (p *prompted) awaitTurn() (s *session, overlaps bool, err error) {
	q, ctx := p.at.Queue, p.turn.Context()
	if err := p.from.initialized(ctx); err != nil {
		return nil, false, err
	}
	if err := p.at.Acquire(ctx); err != nil {
		return nil, false, err
	}
	s = q.Active()
	if s == nil || s != p.viewed && !s.viewers.Has(p.from) {
		return nil, false, p.from.adapter.whyInactive(ctx, q.ID)
	}
	_, mayReopen := commands.Parse(p.params.rest)
	exclusive := mayReopen || !s.adapter.info().OverlappingTurns
	overlaps, err = p.at.AwaitTurn(exclusive, s.adapter.turnLimit())
	if err != nil {
		return nil, false, err
	}
	if p.from.endsTurns() { // the turn before may have been the first to learn it
		p.turn.End(backend.ErrCancelled)
		return nil, false, p.turn.Cause()
	}
	if s = q.Active(); s == nil { // it was closed meanwhile
		return nil, false, p.from.adapter.whyInactive(ctx, q.ID)
	}
	return s, overlaps, nil
}

// storeStart stores the start of the turn before the backend acts, and shows it to the clients.
func (p *prompted) storeStart(s *session, overlaps bool) error {
	ctx := p.turn.Context()
	p.stored = sessionstore.Turn{Prompt: p.params.updates(), Overlaps: overlaps}
	s.record.Restart(ctx)
	return s.viewers.Shown.With(ctx, func(now *transcript.Shown) error {
		// An update that the client has seen may not be recorded yet. It comes before the prompt in
		// the history too.
		if err := s.record.Flush(ctx); err != nil {
			return err
		}
		if !now.Titled {
			p.stored.Title = p.params.title()
		}
		err := s.record.Write(func(l sessionstore.Lease) (err error) {
			// The turn must not end while it is open whether the prompt is stored: it is shown if
			// it is.
			ctx, cancel := tasks.Commit(ctx)
			defer cancel()
			p.number, err = s.adapter.options.Store.BeginTurn(ctx, l, p.stored)
			return err
		})
		if err != nil {
			s.failed(err)
			return err
		}
		p.saw = s.viewers
		p.showStart(now)
		return nil
	})
}

// showStart shows the other viewers the prompt, and all of them the title that it gives the session.
func (p *prompted) showStart(now *transcript.Shown) {
	ctx := p.turn.Context()
	if p.saw.Others(p.from) > 0 {
		p.saw.Mark(ctx, p.from, "turn", map[string]bool{"running": true})
		for _, u := range p.stored.Prompt {
			p.saw.Show(ctx, p.from, u)
		}
	}
	if p.stored.Title != "" {
		p.saw.ShowTitle(ctx, now, p.stored.Title)
	}
}

// start prepares the session, gives its backend the prompt, and returns the rest of the turn. A
// command of the adapter is answered in the rest, and so is a question before the prompt.
func (p *prompted) start(s *session, said *turnUpdates) backend.Work {
	defer p.at.Release() // even after a panic
	ctx := p.turn.Context()
	s.watchLease(ctx)
	s.access.Permits.ForgetAsked()
	s.catalog.Refresh(ctx)
	s.showNotice(ctx)
	if command, ok := s.ownCommand(p.params.rest); ok {
		own := &ownTurn{session: s, updates: said}
		return func() (backend.Raw, error) { return own.run(ctx, command) }
	}
	if len(s.budgets.All()) == 0 {
		return p.prompt(s, said)
	}
	return func() (backend.Raw, error) {
		if !s.budgets.Confirm(ctx, s.askBeforeTurn) {
			return budget.Refuse(ctx, said)
		}
		return p.prompt(s, said)()
	}
}

// prompt gives the backend the prompt.
func (p *prompted) prompt(s *session, said *turnUpdates) backend.Work {
	ctx := p.turn.Context()
	s.adapter.takeSnapshots(ctx, s.storeID, s.unguarded)
	return p.turn.Start(s, func(b backend.Session) backend.Work {
		s.spending.BeginTurn()
		return b.Prompt(ctx, p.params.rest, said)
	})
}

// endSpending stores what was used in the turn, which ran in s, and tells the user which budgets it
// has used up. It returns the response with what the turn and the session have cost.
func (p *prompted) endSpending(s *session, result backend.Raw) backend.Raw {
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
	return withMeta(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}

// showFull tells the user why the turn was stopped, if it has sent too much.
func (p *prompted) showFull(s *session) {
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
func (p *prompted) storeEnd(s *session) {
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

// snapshots returns what folders of sessions had before.
func (a *adapter) snapshots() worktree.Snapshots {
	return worktree.NewSnapshots(a.options.SnapshotDir)
}

// takeSnapshots keeps what the folders of a session have before the backend gets a prompt, unless
// that was done for an earlier one.
func (a *adapter) takeSnapshots(ctx context.Context, id sessionstore.ID, w *workspace.Workspace) {
	o := a.options
	if o.SnapshotDir == "" {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.tuning.SnapshotWait,
		errors.New("it was too large to note what was in it before the first prompt"))
	defer cancel()
	var folders []string
	for _, root := range w.Opened() {
		folders = append(folders, root.Recorded().String())
	}
	err := a.tasks.OnDisk(ctx, func() error {
		return a.snapshots().Take(ctx, string(id), folders)
	})
	if err != nil {
		a.log.Warn("cannot take snapshots of folders", "session", id, "error", err)
	}
}
