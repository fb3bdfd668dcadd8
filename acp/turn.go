package acp

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/session/budget"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// run runs the turn, from its prompt's place in the queue until its end is stored. An error means
// that the turn did not begin. From awaitTurn until start has returned, the ticket holds the queue,
// unless the turn had to wait for others (Ticket.AwaitTurn).
func (p *promptRequest) run() error {
	s, overlaps, err := p.awaitTurn()
	if err != nil {
		return err
	}
	if err := p.storeStart(s, overlaps); err != nil {
		return err
	}
	p.from.observe(TurnEvent{Session: s.id, Running: true})
	updates := &turnUpdates{turn: p.turn, sent: tasks.NewMutex(sentInTurn{session: s})}
	outcome := p.turn.Run(s.adapter.tasks, s.adapter.options.tuning.CancelGrace,
		func() (backend.Raw, error) { return p.start(s, updates)() })
	p.end(updates.end(), outcome) // a command may have opened the session again
	return nil
}

// awaitTurn waits until the turn may run, and returns its session: the one that the client has
// open, or had when it sent the prompt. A backend without overlapping turns gets a prompt once all
// earlier prompts were answered, and so does an agent whose session a command may open again.
// overlaps says that other turns may be running.
func (p *promptRequest) awaitTurn() (s *session, overlaps bool, err error) {
	q, ctx := p.ticket.Queue, p.turn.Context()
	if err := p.from.initialized(ctx); err != nil {
		return nil, false, err
	}
	if err := p.ticket.Acquire(ctx); err != nil {
		return nil, false, err
	}
	s = q.Active()
	if s == nil || s != p.viewed && !s.viewers.Has(p.from) {
		return nil, false, p.from.adapter.whyInactive(ctx, q.ID)
	}
	_, mayReopen := commands.Parse(p.params.rest)
	exclusive := mayReopen || !s.adapter.info().OverlappingTurns
	overlaps, err = p.ticket.AwaitTurn(exclusive, s.adapter.turnLimit())
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
func (p *promptRequest) storeStart(s *session, overlaps bool) error {
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
		p.audience = s.viewers
		p.showStart(now)
		return nil
	})
}

// showStart shows the other viewers the prompt, and all of them the title that it gives the session.
func (p *promptRequest) showStart(now *transcript.Shown) {
	ctx := p.turn.Context()
	if p.audience.Others(p.from) > 0 {
		p.audience.Mark(ctx, p.from, "turn", map[string]bool{"running": true})
		for _, u := range p.stored.Prompt {
			p.audience.Show(ctx, p.from, u)
		}
	}
	if p.stored.Title != "" {
		p.audience.ShowTitle(ctx, now, p.stored.Title)
	}
}

// start prepares the session, gives its backend the prompt, and returns the rest of the turn. A
// command of the adapter is answered in the rest, and so is a question before the prompt.
func (p *promptRequest) start(s *session, updates *turnUpdates) backend.Work {
	defer p.ticket.Release() // even after a panic
	ctx := p.turn.Context()
	s.watchLease(ctx)
	s.access.Permits.ForgetAsked()
	s.catalog.Refresh(ctx)
	s.showNotice(ctx)
	if command, ok := s.ownCommand(p.params.rest); ok {
		own := &ownTurn{session: s, updates: updates}
		return func() (backend.Raw, error) { return own.run(ctx, command) }
	}
	if len(s.budgets.All()) == 0 {
		return p.prompt(s, updates)
	}
	return func() (backend.Raw, error) {
		if !s.budgets.Confirm(ctx, s.askBeforeTurn) {
			return budget.Refuse(ctx, updates)
		}
		return p.prompt(s, updates)()
	}
}

// prompt gives the backend the prompt.
func (p *promptRequest) prompt(s *session, updates *turnUpdates) backend.Work {
	ctx := p.turn.Context()
	s.adapter.takeSnapshots(ctx, s.storeID, s.unguarded)
	return p.turn.Start(s, func(b backend.Session) backend.Work {
		s.spending.BeginTurn()
		return b.Prompt(ctx, p.params.rest, updates)
	})
}
