package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
)

// turnUpdates implements [backend.Updates] for one turn.
type turnUpdates struct {
	turn *turns.Turn
	sent tasks.Mutex[sentInTurn]
}

// sentInTurn says how much was sent in a turn, and where.
type sentInTurn struct {
	session *session // to which updates are sent; another one after a command has opened it again
	size    int64    // of the updates, in bytes
}

// afterFull is how much a full turn may still send to end its tool calls, in bytes.
const afterFull = 1 << 20

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, transcript.ShowFirst)
}

// Commit implements [backend.Updates].
func (u *turnUpdates) Commit(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, transcript.StoreFirst)
}

func (u *turnUpdates) send(ctx context.Context, update backend.Update, in transcript.Order) error {
	return u.sent.With(ctx, func(sent *sentInTurn) error {
		if u.turn.IsOver() {
			return backend.ErrTurnOver
		}
		s, before := sent.session, sent.size
		sent.size += int64(len(update.Raw))
		limit := s.adapter.options.tuning.TurnBytes
		if sent.size > limit && before <= limit {
			s.adapter.tasks.Go(func() { u.turn.End(turns.ErrFull) }) // it waits for the backend
		}
		if sent.size > limit+afterFull {
			return turns.ErrFull
		}
		return s.transcript.Send(ctx, update, in)
	})
}

// moveTo sends later updates to s, which has replaced the turn's session and has the same viewers.
func (u *turnUpdates) moveTo(s *session) {
	_ = u.sent.With(context.Background(), func(sent *sentInTurn) error {
		sent.session = s
		return nil
	})
}

// end waits for the update that is being sent. The turn is over for the backend, so that later ones
// are rejected. end returns the turn's session.
func (u *turnUpdates) end() (s *session) {
	_ = u.sent.With(context.Background(), func(sent *sentInTurn) error {
		s = sent.session
		return nil
	})
	return s
}
