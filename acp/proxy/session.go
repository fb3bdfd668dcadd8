package proxy

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is one activation.
type session struct {
	proxy   *proxy
	host    backend.Host
	roots   workspace.Roots
	params  backend.Raw // of its lifecycle request, to open it in a child that was started anew
	history iter.Seq2[backend.Update, error]
	relays  *relays // nil if its MCP servers have none

	announced *announcement

	connecting chan struct{} // holds one value while the child is asked for a session

	sending sync.Mutex // held while a prompt is sent, so that its cancel comes after it
	sent    *link      // where the latest prompt went, nil if it went nowhere yet

	mu       sync.Mutex
	link     *link // nil once closed
	closed   bool
	saved    state
	pending  pending
	listener listener
}

var errSessionClosed = errors.New("the session was closed")

// living is the session's link, nil if the child has to be started anew first.
func (s *session) living() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || !s.link.alive() {
		return nil
	}
	return s.link
}

// adopt makes l the session's link and returns the one before. A session that was closed meanwhile takes none.
func (s *session) adopt(l *link, saved state, p pending) (before *link, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	before = s.link
	s.link, s.saved, s.pending = l, saved, p
	return before, true
}

// Call passes a request on.
func (s *session) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if l := s.living(); l != nil {
		return l.call(ctx, method, params)
	}
	return func() (backend.Raw, error) {
		l, err := s.revive(ctx, 0)
		if err != nil {
			return nil, err
		}
		return l.call(ctx, method, params)()
	}
}

// Notify passes a notification on. A child that has ended hears nothing.
func (s *session) Notify(_ context.Context, method string, params backend.Raw) {
	l := s.living()
	if l == nil {
		s.proxy.log.Info("a notification is for an agent that has ended", "method", method)
		return
	}
	named, err := l.named(params)
	if err != nil {
		s.proxy.log.Warn("a notification has params that are not an object", "method", method)
		return
	}
	l.agent.post(method, named)
}

// Close closes the session in the child, unless another activation goes on with it.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	l := s.link
	s.link, s.closed = nil, true
	s.mu.Unlock()
	var err error
	if l != nil {
		err = l.leave(ctx, s)
	}
	return errors.Join(err, s.relays.leave(s))
}
