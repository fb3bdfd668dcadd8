package proxy

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// childUse is the use of a child by a bridge, from before a session is opened there until the
// bridge has left. It does not change.
type childUse struct {
	child  *child.Process
	bridge *bridge
	shares bool // the MCP servers in its working directory, with other sessions
	alone  bool // it needs these servers for its additional directories
}

// conflicts reports whether two uses of a child share MCP servers that one of them needs alone.
// Sessions with the same relays can share them.
func (u *childUse) conflicts(other *childUse) bool {
	b, with := u.bridge, other.bridge
	return u.shares && other.shares && (u.alone || other.alone) && b != with &&
		b.roots.Cwd() == with.roots.Cwd() && !b.relays.Shares(with.relays)
}

// begin adds the use to those of the proxy, and pins the child until unpin is called. It returns
// nil if the child is about to end, or if the session would share MCP servers that it or another
// one needs alone. The session that it replaces does not count.
func (u *childUse) begin(replaced *bridge) (unpin child.Unpin) {
	conflicts := func(other *childUse) bool {
		return other.child == u.child && other.bridge != replaced && u.conflicts(other)
	}
	p := u.bridge.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.uses, conflicts) {
		return nil
	}
	if unpin = u.child.AddUser(); unpin != nil {
		p.uses = append(p.uses, u)
	}
	return unpin
}

// end ends the use, unless it has ended. A child other than the main one ends with its last use.
func (u *childUse) end(ctx context.Context) error {
	p := u.bridge.proxy
	p.mu.Lock()
	at := slices.Index(p.uses, u)
	if at >= 0 {
		p.uses = slices.Delete(p.uses, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 {
		return nil
	}
	return u.child.RemoveUser(ctx)
}

// childUses returns the uses of all children.
func (p *proxy) childUses() []*childUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.uses)
}

// sharesRelays reports whether another bridge, whose child has not ended, uses the relays of b.
func (b *bridge) sharesRelays() bool {
	return slices.ContainsFunc(b.proxy.childUses(), func(other *childUse) bool {
		return other.bridge != b && b.relays.Shares(other.bridge.relays) &&
			other.child.Running()
	})
}

// useChild begins a use of a child, in which the bridge is to open a session with a saved state in
// place of that of previous. The child is pinned, and is given the roots by mode. Because programs
// are updated while they run, a new child may have other capabilities than the last one. The
// capabilities of the child itself decide.
func (b *bridge) useChild(
	ctx context.Context, previous *bridge, cause backend.Cause, saved state,
) (u *childUse, unpin child.Unpin, mode profiles.RootsMode, err error) {
	p := b.proxy
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
	if replaced := previous.current.running(); replaced != nil {
		at.Apart = replaced.child.Place.Apart
	}
	for {
		c, err := p.program.At(ctx, at)
		if err != nil {
			return nil, nil, mode, err
		}
		mode, wanted := choose(c.Info.AdditionalDirectories)
		if at.Args == nil && len(wanted) > 0 {
			at.Args = wanted
			continue
		}
		u := &childUse{child: c, bridge: b,
			shares: mode == profiles.RootsByContext && profile.SharesServers,
			alone: b.relays.Listens() &&
				(b.roots.Additional().Len() > 0 || saved.SentTools)}
		if unpin := u.begin(previous); unpin != nil {
			return u, unpin, mode, nil
		}
		if c.Running() { // it has conflicting sessions
			at.Apart++
		}
	}
}
