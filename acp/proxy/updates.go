package proxy

import (
	"context"
	"slices"
	"sync"

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

// updateFilter decides about the updates that the child sends while its session is opened. Of state
// updates it keeps the latest of each kind, to be passed on once the session is open.
type updateFilter struct {
	mu       sync.Mutex
	mode     updateMode
	replayed int // other updates so far, unless the mode is live
	states   []backend.Update
}

// isState reports whether only the latest update of a kind counts.
func isState(kind sessionstore.Kind) bool {
	return kind.IsState() || kind == sessionstore.SessionInfoUpdate
}

// set sets the mode and forgets earlier updates.
func (f *updateFilter) set(mode updateMode) { f.end(mode) }

// end sets the mode. It returns how many updates of the history came before, and the latest states.
func (f *updateFilter) end(next updateMode) (replayed int, states []backend.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	replayed, states = f.replayed, f.states
	f.mode, f.replayed, f.states = next, 0, nil
	return replayed, states
}

// take returns the mode for an update, and whether the filter keeps it. It counts an update that is
// part of a history.
func (f *updateFilter) take(u backend.Update) (mode updateMode, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mode == live:
	case !isState(u.Kind):
		f.replayed++
	case f.mode != discardingLate:
		f.states = slices.DeleteFunc(f.states, func(before backend.Update) bool {
			return before.Kind == u.Kind
		})
		f.states = append(f.states, u)
		return f.mode, true
	}
	return f.mode, false
}

// lateReplay returns how many updates of a late replay have come so far, and false if none is to be
// expected.
func (f *updateFilter) lateReplay() (replayed int, expected bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replayed, f.mode == discardingLate
}

// handleUpdate passes on an update of cs. t is the turn it belongs to, or nil. Updates of a turn
// that was answered without waiting for the child are dropped.
func (s *session) handleUpdate(
	ctx context.Context, cs *childSession, t *turn, u backend.Update,
) error {
	u, ok := withoutContext(u)
	if !ok {
		return nil
	}
	mode, kept := s.updates.take(u)
	switch {
	case kept:
		return nil
	case mode == replaying:
		return s.host.Replay(ctx, u)
	case mode != live && !isState(u.Kind):
		return nil
	case mode == live:
		cs.settings.update(u)
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

// pingMethod is a request that the child rejects. Its answer follows what the child has written
// before.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay is over, so that it is not taken for part of the turn that
// is about to begin. It is over when the child answers a request without having replayed more: it
// writes the rest of a replay while it waits for input.
func (s *session) awaitReplay(ctx context.Context, cs *childSession) {
	before, expected := s.updates.lateReplay()
	if !expected {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cs.child.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for {
		_, err := cs.child.request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			cs.child.log.Debug("the agent may still replay a conversation", "error", err)
			break
		}
		now, _ := s.updates.lateReplay()
		if now == before {
			break
		}
		before = now
	}
	s.updates.set(live)
}
