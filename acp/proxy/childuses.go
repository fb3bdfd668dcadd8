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

// newChildUse returns the use of c by b, which has not begun, for a session with a saved state.
func newChildUse(c *child, b *bridge, mode profiles.RootsMode, saved state) *childUse {
	return &childUse{child: c, bridge: b, mode: mode,
		shares: mode == profiles.RootsByContext && c.proxy.options.Profile.Roots.SharesServers,
		alone:  b.servers.relays != nil && (b.roots.Additional().Len() > 0 || saved.SentTools)}
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

// childUses are what a child is needed for: bridges that use it, and pins. A pin keeps it from
// being stopped as idle: during the opening of a session, and requests to and from it. A child that
// is about to end gets no more of them.
type childUses struct {
	life    context.Context         // of the child
	stop    context.CancelCauseFunc // ends life
	lasting bool                    // the child lives on without sessions

	mu       sync.Mutex
	byBridge []*childUse
	pins     int
	active   bool // it was started, or unpinned, since stopIfIdle
}

// begin adds a use and a pin, and returns what removes the pin. It returns nil if the child is
// about to end, or if the session would share MCP servers that it or another one needs alone. The
// session that it replaces, if there is one, does not count.
func (us *childUses) begin(u *childUse, replaced *bridge) (unpin func()) {
	conflicts := func(other *childUse) bool {
		return other.bridge != replaced && u.conflicts(other)
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.life.Err() != nil || slices.ContainsFunc(us.byBridge, conflicts) {
		return nil
	}
	us.byBridge = append(us.byBridge, u)
	us.pins++
	return us.unpin
}

// end removes a use. It reports whether that was the last one for which the child lived.
func (us *childUses) end(u *childUse) (last bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.byBridge = slices.DeleteFunc(us.byBridge, func(other *childUse) bool { return other == u })
	last = len(us.byBridge) == 0 && !us.lasting
	if last {
		us.stop(nil)
	}
	return last
}

// list returns the bridges' uses.
func (us *childUses) list() []*childUse {
	us.mu.Lock()
	defer us.mu.Unlock()
	return slices.Clone(us.byBridge)
}

// pin adds a pin, and returns what removes it. It returns nil if the child is about to end.
func (us *childUses) pin() (unpin func()) {
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.life.Err() != nil {
		return nil
	}
	us.pins++
	return us.unpin
}

func (us *childUses) unpin() {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.pins--
	us.active = true
}

// unpinAfter returns work that calls unpin at its end. Without work it calls unpin now.
func unpinAfter(work backend.Work, unpin func()) backend.Work {
	if work == nil {
		unpin()
		return nil
	}
	return func() (backend.Raw, error) {
		defer unpin()
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
