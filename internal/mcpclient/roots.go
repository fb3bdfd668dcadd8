package mcpclient

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// current is what a server is told that asks: the session's roots as far as they are there (M6).
func (s *Set) current(context.Context) (mcproots.Snapshot, error) {
	s.mu.Lock()
	granted, visible, closed := s.granted, s.visible, s.closed
	s.mu.Unlock()
	if closed {
		return mcproots.Snapshot{}, backend.ErrClosed
	}
	now := granted.Existing()
	if !now.Equal(visible) {
		select {
		case s.stale <- struct{}{}:
		default:
		}
	}
	return now, nil
}

// watch looks at the roots from time to time, and when a server was told less than before (M6).
func (s *Set) watch() {
	ticker := time.NewTicker(s.options.CheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.stale:
		case <-s.base.Done():
			return
		}
		s.look()
	}
}

// look announces roots that vanished, or came back, to the servers and to the user.
func (s *Set) look() {
	s.mu.Lock()
	granted, before := s.granted, s.visible
	s.mu.Unlock()
	now := granted.Existing()
	s.mu.Lock()
	if !s.granted.Equal(granted) || !s.visible.Equal(before) || now.Equal(before) {
		s.mu.Unlock()
		return
	}
	s.visible = now
	members := s.members
	s.mu.Unlock()
	if gone := before.Missing(now); len(gone) > 0 {
		s.options.Logger.Warn("roots of a session vanished; its MCP servers are no longer told of them", "roots", len(gone))
		s.say("No longer there: " + describe(gone) + ". The session's MCP servers are not told of it any more.")
	}
	if back := now.Missing(before); len(back) > 0 {
		s.say("There again: " + describe(back) + ". The session's MCP servers are told of it.")
	}
	var telling sync.WaitGroup
	for _, m := range members {
		if l := m.connected(); l != nil {
			telling.Go(l.announce)
		}
	}
	telling.Wait()
}

// describe lists roots for a person.
func describe(roots []mcproots.Root) string {
	paths := make([]string, len(roots))
	for i, r := range roots {
		paths[i] = oneLine(r.Real.String())
	}
	return strings.Join(paths, ", ")
}
