package acp

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
)

// turnUpdates implements [backend.Updates] for one turn.
type turnUpdates struct {
	turn *turns.Turn
	// session is the one to which updates are sent. It changes while an update has begun, and has
	// the same viewers then.
	session atomic.Pointer[session]
	// metered means that what the turn uses is counted, because the backend has the prompt.
	metered atomic.Bool

	// Guarded by beginUpdate:
	sent int64 // bytes of updates
	over bool
}

// errTurnFull ends a turn that has sent too many updates. Otherwise an agent that loops would fill
// the disk.
var errTurnFull = errors.New("the turn has reached the limit for the output of one turn")

// afterFull is how much a full turn may still send to end its tool calls, in bytes.
const afterFull = 1 << 20

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, showFirst)
}

// Commit implements [backend.Updates].
func (u *turnUpdates) Commit(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, storeFirst)
}

func (u *turnUpdates) send(ctx context.Context, update backend.Update, in order) error {
	s := u.session.Load()
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	if u.over {
		return backend.ErrTurnOver
	}
	s = u.session.Load()
	limit, size := s.agent.options.tuning.TurnBytes, int64(len(update.Raw))
	u.sent += size
	if u.sent > limit && u.sent-size <= limit {
		s.agent.tasks.Go(func() { u.turn.End(errTurnFull) }) // it waits for the backend
	}
	if u.sent > limit+afterFull {
		return errTurnFull
	}
	return s.send(ctx, s.announce(update), in)
}

// moveTo sends later updates to s, which has replaced the turn's session.
func (u *turnUpdates) moveTo(s *session) {
	_ = s.beginUpdate(context.Background())
	defer s.endUpdate()
	u.session.Store(s)
}

// end waits for the update that is being sent and rejects later ones. It returns the turn's
// session.
func (u *turnUpdates) end() *session {
	s := u.session.Load()
	_ = s.beginUpdate(context.Background())
	defer s.endUpdate()
	u.over = true
	return u.session.Load()
}
