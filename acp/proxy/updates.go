package proxy

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// updateMode says what happens to the child's updates.
type updateMode int

const (
	live           updateMode = iota // pass them on
	replaying                        // pass them on as the history that a load shows
	discarding                       // drop them: they are a history that was not asked for
	discardingLate                   // drop them also after the response, until awaitReplay
)

// updateFilter handles the updates that the child sends while its session is opened. Of state
// updates only the latest of each kind is kept, and passed on once the session is open.
type updateFilter struct {
	mode     updateMode
	replayed int // other updates so far, unless the mode is live
	states   []backend.Update
}

// isState reports whether only the latest update of a kind counts.
func isState(kind sessionstore.Kind) bool {
	return kind.IsState() || kind == sessionstore.SessionInfoUpdate
}

// setUpdateMode sets the mode and forgets earlier updates.
func (s *session) setUpdateMode(mode updateMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = updateFilter{mode: mode}
}

// endReplay sets the mode. It returns how many updates of the history came before, and the latest
// states.
func (s *session) endReplay(next updateMode) (replayed int, states []backend.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.updates
	s.updates = updateFilter{mode: next}
	return before.replayed, before.states
}

// isLive reports whether updates are passed on as they come.
func (s *session) isLive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates.mode == live
}

// handleUpdate passes on an update of the child. t is the turn it belongs to, or nil. Updates of a
// turn that was answered without waiting for the child are dropped.
func (s *session) handleUpdate(ctx context.Context, t *turn, u backend.Update) error {
	u, ok := withoutContext(u)
	if !ok {
		return nil
	}
	switch s.modeFor(u) {
	case replaying:
		if s.keepState(u) {
			return nil
		}
		return s.host.Replay(ctx, u)
	case discarding:
		s.keepState(u)
		return nil
	case discardingLate:
		if !isState(u.Kind) {
			return nil
		}
	}
	if t != nil {
		return s.passOn(ctx, t.updates, u)
	}
	return s.passOn(ctx, s.host, u)
}

// passOn shows the client an update. The commands of the roots are added to those of the child.
func (s *session) passOn(ctx context.Context, to backend.Updates, u backend.Update) error {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		return s.announceChild(ctx, to, u.Raw)
	}
	return to.Update(ctx, u)
}

// modeFor returns the mode for an update, and counts it if it is part of a history.
func (s *session) modeFor(u backend.Update) updateMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updates.mode != live && !isState(u.Kind) {
		s.updates.replayed++
	}
	return s.updates.mode
}

// lateReplay returns how many updates of a late replay have come so far, and false if none is to be
// expected.
func (s *session) lateReplay() (replayed int, expected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates.replayed, s.updates.mode == discardingLate
}

// pingMethod is a request that the child rejects. Its answer follows what the child has written
// before.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay is over, so that it is not taken for part of the turn that
// is about to begin. It is over when the child answers a request without having replayed more: it
// writes the rest of a replay while it waits for input.
func (s *session) awaitReplay(ctx context.Context, cs *childSession) {
	before, expected := s.lateReplay()
	if !expected {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cs.child.limits.endTimeout, errNoAnswer)
	defer cancel()
	for {
		_, err := cs.child.call(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			cs.child.log.Debug("the agent may still replay a conversation", "error", err)
			break
		}
		now, _ := s.lateReplay()
		if now == before {
			break
		}
		before = now
	}
	s.setUpdateMode(live)
}

// keepState keeps u if it is a state update.
func (s *session) keepState(u backend.Update) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.updates
	if !isState(u.Kind) {
		return false
	}
	at := slices.IndexFunc(f.states, func(before backend.Update) bool { return before.Kind == u.Kind })
	if at < 0 {
		f.states = append(f.states, u)
	} else {
		f.states[at] = u
	}
	return true
}
