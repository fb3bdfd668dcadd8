package acp

import (
	"time"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
)

// The turns of a remote client outlive its connection: they go on with the other viewers of the
// session, or without any, until they end or the grace has passed.

// leave takes a client from the viewers of s.
func (s *session) leave(c *connection) {
	if s.viewers.Leave(c) {
		s.closeWhenIdle(c.graceNow())
	}
}

// closeWhenIdle closes s if it has no viewer that may answer, once its turns have ended or the
// given time has passed. It stops if such a viewer comes.
func (s *session) closeWhenIdle(during time.Duration) {
	back := s.viewers.Alone()
	if back == nil {
		return
	}
	s.agent.tasks.Go(func() {
		grace := time.After(during)
		for over := during == 0; !s.closeUnviewed(over); {
			running := s.queue.Unanswered()
			if len(running) == 0 { // the last one has just ended
				continue
			}
			select {
			case <-running[0].Done():
			case <-back:
				return
			case <-s.agent.base.Done():
				return
			case <-grace:
				over = true
			}
		}
	})
}

// closeUnviewed closes s once earlier requests are served, unless a client has opened it. If a turn
// is still running, closeUnviewed ends it once the grace has passed; before that it leaves s open
// and reports false.
func (s *session) closeUnviewed(over bool) bool {
	base := s.agent.base
	at := s.agent.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	defer at.Release()
	if at.Acquire(base) != nil || at.Queue.Active() != s || s.viewers.Alone() == nil {
		return true
	}
	if !over && len(at.Queue.Unanswered()) > 0 {
		return false
	}
	_, _ = endActive(base, base, at, nil)
	return true
}
