package proxy

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// childUse is the use of a child by a bridge, from before a session is opened there until the
// bridge has left. It does not change.
type childUse struct {
	child  *child.Process
	bridge *bridge
	mode   profiles.RootsMode // how the child is given the roots
	shares bool               // the MCP servers in its working directory, with other sessions
	alone  bool               // it needs these servers for its additional directories
}

// conflicts reports whether two uses of a child share MCP servers that one of them needs alone.
// Sessions with the same relays can share them.
func (u *childUse) conflicts(other *childUse) bool {
	b, with := u.bridge, other.bridge
	relays := b.servers.relays
	return u.shares && other.shares && (u.alone || other.alone) && b != with &&
		b.roots.Cwd() == with.roots.Cwd() && (relays == nil || relays != with.servers.relays)
}

// childUses are the uses of all children.
type childUses struct {
	mu   sync.Mutex
	list []*childUse
}

// begin adds a use, and pins its child until unpin is called. It returns nil if the child is about
// to end, or if the session would share MCP servers that it or another one needs alone. The session
// that it replaces, if there is one, does not count.
func (us *childUses) begin(u *childUse, replaced *bridge) (unpin child.Unpin) {
	conflicts := func(other *childUse) bool {
		return other.child == u.child && other.bridge != replaced && u.conflicts(other)
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	if slices.ContainsFunc(us.list, conflicts) {
		return nil
	}
	if unpin = u.child.Use(); unpin != nil {
		us.list = append(us.list, u)
	}
	return unpin
}

// end ends a use, unless it has ended. A child other than the main one ends with its last use.
func (us *childUses) end(ctx context.Context, u *childUse) error {
	us.mu.Lock()
	at := slices.Index(us.list, u)
	if at >= 0 {
		us.list = slices.Delete(us.list, at, at+1)
	}
	us.mu.Unlock()
	if at < 0 {
		return nil
	}
	return u.child.Release(ctx)
}

// shareRelays reports whether another bridge, whose child has not ended, uses the relays of b.
func (us *childUses) shareRelays(b *bridge) bool {
	return slices.ContainsFunc(us.all(), func(other *childUse) bool {
		return other.bridge != b && other.bridge.servers.relays == b.servers.relays &&
			other.child.Running()
	})
}

// all returns the uses of all children.
func (us *childUses) all() []*childUse {
	us.mu.Lock()
	defer us.mu.Unlock()
	return slices.Clone(us.list)
}

// childFor begins a use of a child by b, which is to open a session with a saved state in place of
// previous. The child is pinned. Because programs are updated while they run, a new child may have
// other capabilities than the last one. The capabilities of the child itself decide.
func (p *proxy) childFor(
	ctx context.Context, b, previous *bridge, cause backend.Cause, saved state,
) (u *childUse, unpin child.Unpin, err error) {
	profile := p.options.Profile.Roots
	takes := cause == backend.New || !profile.OnlyNew
	choose := func(advertised bool) (profiles.RootsMode, []string) {
		return profile.Choose(advertised && takes, b.roots.Additional())
	}
	_, flags := choose(p.program.Info().AdditionalDirectories)
	at := child.Place{Args: flags}
	if p.isRestricted() {
		at.Roots = b.host.Workspace().Opened()
	}
	if replaced := previous.running(); replaced != nil {
		at.Apart = replaced.child.Place.Apart
	}
	for {
		c, err := p.program.At(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		mode, wanted := choose(c.Info.AdditionalDirectories)
		if at.Args == nil && len(wanted) > 0 {
			at.Args = wanted
			continue
		}
		u := &childUse{child: c, bridge: b, mode: mode,
			shares: mode == profiles.RootsByContext && profile.SharesServers,
			alone: b.servers.relays != nil &&
				(b.roots.Additional().Len() > 0 || saved.SentTools)}
		if unpin := p.uses.begin(u, previous); unpin != nil {
			return u, unpin, nil
		}
		if c.Running() { // it has conflicting sessions
			at.Apart++
		}
	}
}
