package acp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// turnUpdates implements [backend.Updates] for one turn.
type turnUpdates struct {
	session *session
	turn    *turns.Turn
	sent    atomic.Int64 // bytes of updates
	// spending counts what the turn uses, once the backend has the prompt.
	spending atomic.Pointer[spending]

	mu   sync.RWMutex
	over bool
}

// errTurnFull ends a turn that has sent too many updates. Otherwise an agent that loops would fill
// the disk.
var errTurnFull = errors.New("the turn has reached the limit for what one turn may say and do")

// afterFull is how much a full turn may still send to end its tool calls, in bytes.
const afterFull = 1 << 20

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, (*session).update)
}

// Commit implements [backend.Updates].
func (u *turnUpdates) Commit(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, (*session).commit)
}

func (u *turnUpdates) send(ctx context.Context, update backend.Update, send sender) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.over {
		return backend.ErrTurnOver
	}
	agent := u.session.agent
	limit, size := agent.options.tuning.TurnBytes, int64(len(update.Raw))
	sent := u.sent.Add(size)
	if sent > limit && sent-size <= limit {
		agent.tasks.Go(func() { u.turn.End(errTurnFull) })
	}
	if sent > limit+afterFull {
		return errTurnFull
	}
	return send(u.session, ctx, u.session.host.announce(update))
}

// current returns the session to which updates are sent.
func (u *turnUpdates) current() *session {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.session
}

// watchLease ends the turn soon after another process has taken its session over. Without it an
// agent that says nothing, and so stores nothing, would go on working.
func (u *turnUpdates) watchLease(t *turns.Turn) {
	a := u.current().agent
	a.tasks.Go(func() {
		for range pause.Every(t.Context(), a.options.tuning.LeaseCheck) {
			s := u.current()
			if err := s.checkLease(t.Context()); gone(err) {
				s.failed(err)
				return
			}
		}
	})
}

// moveTo sends later updates to s, which has replaced the turn's session.
func (u *turnUpdates) moveTo(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.session = s
}

// end waits for updates that are being sent and rejects later ones. It returns the turn's session.
func (u *turnUpdates) end() *session {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	return u.session
}
