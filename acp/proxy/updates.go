package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// listening says what is made of the child's updates.
type listening int

const (
	passingOn listening = iota // they are for the client
	replaying                  // they are the history that a load shows
	ignoring                   // they are a history that nobody asked for
	lagging                    // the same, behind the answer: it ends with the first turn
)

// listener takes what the child says while its session is opened. States count as they are in the end (A27).
type listener struct {
	mode     listening
	replayed int
	states   []spoken
}

// spoken is the latest update of a state kind.
type spoken struct {
	kind   string
	update backend.Update
}

// isState reports whether only the latest update of a kind counts.
func isState(kind string) bool {
	return slices.Contains([]string{
		commandsKind, "current_mode_update", "config_option_update", "usage_update", "session_info_update",
	}, kind)
}

// listen sets what is made of updates from here on.
func (s *session) listen(mode listening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener{mode: mode}
}

// heard goes on with another mode, and returns how many updates of the history came and the states that were
// told meanwhile.
func (s *session) heard(next listening) (replayed int, states []spoken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listener
	s.listener = listener{mode: next}
	return l.replayed, l.states
}

// update shows the client an update, in the turn if it is of one. What comes in a turn that was answered
// without the child comes too late (W6).
func (s *session) update(ctx context.Context, t *turn, u backend.Update) error {
	u, is := withoutContext(u)
	if !is {
		return nil
	}
	switch s.mode(t) {
	case replaying:
		if s.keep(u) {
			return nil
		}
		return s.host.Replay(ctx, u)
	case ignoring:
		s.keep(u)
		return nil
	case lagging:
		if !isState(kindOf(u)) {
			return nil
		}
	}
	if t != nil {
		return s.show(ctx, t.updates, u)
	}
	return s.show(ctx, s.host, u)
}

// show shows the client an update, one of the child's commands together with ours.
func (s *session) show(ctx context.Context, to backend.Updates, u backend.Update) error {
	if bytes.Contains(u, []byte(commandsKind)) && kindOf(u) == commandsKind {
		return s.announce(ctx, to, u)
	}
	return to.Update(ctx, u)
}

// mode is what is made of an update. The first turn ends a late replay.
func (s *session) mode(t *turn) listening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t != nil && s.listener.mode == lagging {
		s.listener.mode = passingOn
	}
	return s.listener.mode
}

// isOpen reports whether what the child says is of now, not of its history.
func (s *session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener.mode == passingOn
}

// keep keeps a state for later. It reports whether u is one.
func (s *session) keep(u backend.Update) bool {
	kind := kindOf(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.listener
	if !isState(kind) {
		l.replayed++
		return false
	}
	for i := range l.states {
		if l.states[i].kind == kind {
			l.states[i].update = u
			return true
		}
	}
	l.states = append(l.states, spoken{kind, u})
	return true
}

// kindOf is the kind of an update, "" if it has none.
func kindOf(u backend.Update) string {
	var p struct {
		Update struct {
			Kind string `json:"sessionUpdate"`
		} `json:"update"`
	}
	_ = json.Unmarshal(u, &p) // what cannot be read has none
	return p.Update.Kind
}
