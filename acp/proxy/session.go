package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// session is an activation that is connected to a session of a child. It implements
// [backend.Session], and lives from Open to Close. It has no lock: what changes is in parts that
// have their own.
type session struct {
	*activation
	servers  *servers
	writer   *contextWriter
	commands *commands
	current  current
	prompts  promptQueue
	updates  updateFilter
	hints    hints
	reviving chan struct{} // a semaphore, held while the child is restarted for the session
}

// newSession returns the session of r, which has the relays and commands of the one that it
// replaces, if there is one.
func newSession(r openRequest, a *activation) *session {
	s := &session{activation: a, servers: &servers{activation: a},
		current: current{activation: a}, reviving: make(chan struct{}, 1)}
	s.servers.refusesTools.Store(r.state.RefusesTools)
	s.writer = newContextWriter(a, s.servers)
	if r.previous != nil {
		s.commands = r.previous.commands
	} else {
		s.commands = &commands{proxy: a.proxy, said: make(map[string]bool),
			stale: r.state.Offered && r.Cause != backend.Fork}
	}
	r.session = s
	s.servers.relays = joinRelays(r)
	return s
}

// Call implements [backend.Session]: it passes the request on.
func (s *session) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if cs := s.current.pin(); cs != nil {
		return cs.child.whilePinned(cs.forward(ctx, method, params))
	}
	return func() (backend.Raw, error) {
		cs, err := s.revive(ctx)
		if err != nil {
			return nil, err
		}
		defer cs.child.unpin()
		return cs.forward(ctx, method, params)()
	}
}

// Notify implements [backend.Session]: it passes the notification on, unless the child has ended.
func (s *session) Notify(_ context.Context, method string, params backend.Raw) {
	cs := s.current.pin()
	if cs == nil {
		s.proxy.log.Info("dropped a notification for an agent that has ended", "method", method)
		return
	}
	defer cs.child.unpin()
	cs.child.notify(method, withSessionID(params, cs.id))
}

// Close implements [backend.Session]: it closes the child's session, unless another activation uses
// it.
func (s *session) Close(ctx context.Context) error {
	_, err := s.CloseFor(ctx, backend.Raw(`{}`))
	return err
}

// CloseFor implements [backend.Closer].
func (s *session) CloseFor(
	ctx context.Context, params backend.Raw,
) (result backend.Raw, err error) {
	if cs := s.current.close(); cs != nil {
		result, err = cs.leave(ctx, s, params)
	}
	return result, errors.Join(err, s.servers.relays.leave(s))
}

// SandboxText implements [backend.Confined].
func (s *session) SandboxText() string {
	cs, _ := s.current.get()
	if cs == nil {
		return ""
	}
	return cs.child.sandbox.Describe()
}

// revive opens the child's session again, mostly because the child has ended, and pins the child.
func (s *session) revive(ctx context.Context) (*childSession, error) {
	select {
	case s.reviving <- struct{}{}:
		defer func() { <-s.reviving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if cs := s.current.pin(); cs != nil {
		return cs, nil
	}
	before, saved := s.current.get()
	if before == nil {
		return nil, errSessionClosed
	}
	if err := before.child.awaitEnd(ctx); err != nil {
		return nil, err
	}
	lost := before.child.router.subagents(before)
	r := openRequest{Activation: backend.Activation{Cause: backend.Resume}, session: s,
		state: saved}
	_, cs, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	s.proxy.log.Info("a session was opened again in the agent", "child", cs.child.process.Name())
	s.loseSubagents(ctx, lost)
	cs.repeatSettings(ctx, before)
	return cs, nil
}
