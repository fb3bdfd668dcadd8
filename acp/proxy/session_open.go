package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Open implements [backend.Backend]: it opens a session of the child.
func (p *proxy) Open(
	ctx context.Context, asked backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	roots, err := parseRoots(asked.Params)
	if err != nil {
		return nil, backend.Opened{}, err
	}
	if w := h.Workspace(); w != nil {
		roots = roots.Granting(w.Roots().Grant)
	}
	p.addSecrets(asked.Params)
	saved := decodeState(asked.State)
	b, previous := newBridge(newSetup(p, asked, h, roots), asked, saved)
	u, opened, err := b.open(ctx, asked, previous, saved)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, b.Close(ctx))
	}
	u.unpin()
	opened.Notice = p.sandboxNotice() + opened.Notice
	return b, opened, nil
}

// open makes a session of a child the bridge's current one, in place of that of previous. The child
// stays pinned until u.unpin. saved is the state of ours, for a fork that of its source.
func (b *bridge) open(
	ctx context.Context, asked backend.Activation, previous *bridge, saved state,
) (u *childUse, opened backend.Opened, err error) {
	if u, err = b.useChild(ctx, previous, asked.Cause, saved); err != nil {
		return nil, opened, err
	}
	opened, err = opener{previous: previous, use: u, plan: plan{
		asked: asked, saved: saved, agent: u.child.Info, mode: u.mode, given: b.given(u.mode),
		tools: b.tool(state{RootsMode: u.mode}).Name != "",
	}}.open(ctx)
	if err != nil {
		u.close(context.WithoutCancel(ctx))
		u.unpin()
		return nil, opened, err
	}
	return u, opened, nil
}
