package proxy

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// childUse is the use of a child by a bridge, from before a session is opened there until the
// bridge has left. It does not change.
type childUse struct {
	child  *child
	bridge *bridge
	mode   profiles.RootsMode // how the child is given the roots
	shares bool               // the MCP servers in its working directory, with other sessions
	alone  bool               // it needs these servers for its additional directories
}

// newChildUse returns the use of c by the session of r, which has not begun.
func newChildUse(c *child, r *openRequest, mode profiles.RootsMode) *childUse {
	b := r.bridge
	return &childUse{child: c, bridge: b, mode: mode,
		shares: mode == profiles.RootsByContext && c.proxy.options.Profile.Roots.SharesServers,
		alone:  b.servers.relays != nil && (b.roots.Additional().Len() > 0 || r.saved.SentTools)}
}

// conflicts reports whether two uses share MCP servers that one of them needs alone. Sessions with
// the same relays can share them.
func (u *childUse) conflicts(other *childUse) bool {
	b, with := u.bridge, other.bridge
	relays := b.servers.relays
	return u.shares && other.shares && (u.alone || other.alone) && b != with &&
		b.roots.Cwd() == with.roots.Cwd() && (relays == nil || relays != with.servers.relays)
}

// release ends the use, unless it has ended. A child other than the main one ends with its last
// use.
func (u *childUse) release(ctx context.Context) error {
	if u.child.uses.end(u) {
		return u.child.close(ctx)
	}
	return nil
}

// childUses are what a child is needed for: bridges that use it, and pins. A child that is about to
// end gets no more of them.
type childUses struct {
	life    context.Context         // of the child
	stop    context.CancelCauseFunc // ends life
	lasting bool                    // the child lives on without sessions

	mu       sync.Mutex
	sessions []*childUse
	pins     int  // that are held
	active   bool // it was started, or a pin was released, since stopIfIdle
}

// begin adds a use, and returns a pin. It returns false if the child is about to end, or if the
// session would share MCP servers that it or another one needs alone. The session that it replaces,
// if there is one, does not count.
func (us *childUses) begin(u *childUse, replaced *bridge) (_ pin, begun bool) {
	conflicts := func(other *childUse) bool {
		return other.bridge != replaced && u.conflicts(other)
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.life.Err() != nil || slices.ContainsFunc(us.sessions, conflicts) {
		return pin{}, false
	}
	us.sessions = append(us.sessions, u)
	us.pins++
	return pin{us}, true
}

// end removes a use. It reports whether that was the last one for which the child lived.
func (us *childUses) end(u *childUse) (last bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.sessions = slices.DeleteFunc(us.sessions, func(other *childUse) bool { return other == u })
	last = len(us.sessions) == 0 && !us.lasting
	if last {
		us.stop(nil)
	}
	return last
}

// list returns the sessions' uses.
func (us *childUses) list() []*childUse {
	us.mu.Lock()
	defer us.mu.Unlock()
	return slices.Clone(us.sessions)
}

// pin keeps a child from being stopped as idle: during the opening of a session, and requests to
// and from it. Its owner releases it, once.
type pin struct{ on *childUses }

// pin returns a pin, and false if the child is about to end.
func (us *childUses) pin() (_ pin, held bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.life.Err() != nil {
		return pin{}, false
	}
	us.pins++
	return pin{us}, true
}

func (p pin) release() {
	p.on.mu.Lock()
	defer p.on.mu.Unlock()
	p.on.pins--
	p.on.active = true
}

// during releases the pin at the end of work, or now if there is no work.
func (p pin) during(work backend.Work) backend.Work {
	if work == nil {
		p.release()
		return nil
	}
	return func() (backend.Raw, error) {
		defer p.release()
		return work()
	}
}

// stopIfIdle stops the child if there was nothing to do for it since the last call.
func (us *childUses) stopIfIdle() (stopped bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	stopped = !us.active && us.pins == 0
	us.active = false
	if stopped {
		us.stop(nil)
	}
	return stopped
}
