package proxy

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// revive gives the session a session of the child's again after the child has ended: the child is started anew
// and opens it, or is told what was said in it so far. unsaid is the number of blocks of a prompt that is
// recorded and that the child is sent next.
func (s *session) revive(ctx context.Context, unsaid int) (*link, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	before, saved, closed := s.link, s.saved, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errSessionClosed
	case before.alive():
		return before, nil
	}
	if _, err := s.connect(ctx, wanted{cause: backend.Resume, state: saved, unsaid: unsaid, unread: true}); err != nil {
		return nil, err
	}
	l := s.living()
	if l == nil {
		return nil, errSessionClosed
	}
	s.proxy.log.Info("a session goes on with an agent that was started anew", "child", l.agent.process.Name())
	for _, c := range before.settings.choices() {
		if err := l.choose(ctx, c); err != nil {
			s.proxy.log.Warn("the agent that was started anew did not take a setting", "method", c.method, "error", err)
		}
	}
	return l, nil
}
