package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// childUse is the use of a child by a bridge, and of the session that is opened there. Closing it
// releases all that it holds but the pin, and is done once: by bridge.open if that fails, and
// otherwise after current has given it up. It does not change once it is there.
type childUse struct {
	child  *child.Process
	bridge *bridge
	mode   profiles.RootsMode // how the child is given the roots
	shares bool               // the MCP servers in its working directory, with other sessions
	alone  bool               // it needs these servers for its additional directories

	unpin   child.Unpin   // removes the pin of the opening, or of the request that needs it
	session *childSession // nil before, and if the child has rejected all requests for one
}

// conflicts reports whether two uses of a child share MCP servers that one of them needs alone.
// Sessions with the same relays can share them.
func (u *childUse) conflicts(other *childUse) bool {
	b, with := u.bridge, other.bridge
	return u.shares && other.shares && (u.alone || other.alone) && b != with &&
		b.roots.Cwd() == with.roots.Cwd() && !b.relays.Shares(with.relays)
}

// begin adds the use to those of the proxy, and pins the child. It returns false if the child is
// about to end, or if the session would share MCP servers that it or another one needs alone. The
// session that it replaces does not count.
func (u *childUse) begin(replaced *bridge) bool {
	conflicts := func(other *childUse) bool {
		return other.child == u.child && other.bridge != replaced && u.conflicts(other)
	}
	p := u.bridge.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.uses, conflicts) {
		return false
	}
	unpin := u.child.AddUser()
	if unpin == nil {
		return false
	}
	u.unpin, p.uses = sync.OnceFunc(unpin), append(p.uses, u)
	return true
}

// close is closeFor without a request of the client. It logs errors.
func (u *childUse) close(ctx context.Context) {
	switch _, err := u.closeFor(ctx, backend.Raw(`{}`)); {
	case err != nil && u.session != nil:
		u.bridge.proxy.log.Warn("cannot close a session of the agent", "error", err)
	case err != nil:
		u.child.Log.Warn("cannot end an agent", "error", err)
	}
}

// closeFor leaves the session and then the child. After its last user, the session is closed in the
// child with the given params, if the child runs and supports that, unless the session was opened
// again. A child other than the main one ends with its last user.
func (u *childUse) closeFor(
	ctx context.Context, params backend.Raw,
) (result backend.Raw, err error) {
	if cs := u.session; cs != nil && cs.leave(u) {
		defer cs.detach()
		now := cs.child.Router.Find(cs.key)
		if (now == nil || now == cs.root) && cs.child.Info.Close && cs.child.Running() {
			result, err = cs.child.RequestStored(ctx, protocol.SessionClose,
				withSessionID(params, cs.id))
		}
	}
	p := u.bridge.proxy
	p.mu.Lock()
	p.uses = slices.DeleteFunc(p.uses, func(other *childUse) bool { return other == u })
	p.mu.Unlock()
	return result, errors.Join(err, u.child.RemoveUser(ctx))
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
// place of that of previous. Because programs are updated while they run, a new child may have
// other capabilities than the last one. The capabilities of the child itself decide.
func (b *bridge) useChild(
	ctx context.Context, previous *bridge, cause backend.Cause, saved state,
) (*childUse, error) {
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
			return nil, err
		}
		mode, wanted := choose(c.Info.AdditionalDirectories)
		if at.Args == nil && len(wanted) > 0 {
			at.Args = wanted
			continue
		}
		u := &childUse{child: c, bridge: b, mode: mode,
			shares: mode == profiles.RootsByContext && profile.SharesServers,
			alone: b.relays.Listens() &&
				(b.roots.Additional().Len() > 0 || saved.SentTools)}
		if u.begin(previous) {
			return u, nil
		}
		if c.Running() { // it has conflicting sessions
			at.Apart++
		}
	}
}
