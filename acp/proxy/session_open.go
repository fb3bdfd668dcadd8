package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
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
	_, unpin, opened, err := b.open(ctx, asked, previous, saved)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, b.relays.Leave())
	}
	unpin()
	opened.Notice = p.sandboxNotice() + opened.Notice
	return b, opened, nil
}

// open connects the bridge to a session of a child, which is pinned, in place of that of previous.
// saved is the state of ours, for a fork that of its source.
func (b *bridge) open(
	ctx context.Context, asked backend.Activation, previous *bridge, saved state,
) (cs *childSession, unpin child.Unpin, opened backend.Opened, err error) {
	use, unpin, mode, err := b.useChild(ctx, previous, asked.Cause, saved)
	if err != nil {
		return nil, nil, opened, err
	}
	cs, opened, err = opener{previous: previous, use: use, plan: plan{
		asked: asked, saved: saved, agent: use.child.Info, mode: mode, given: b.given(mode),
		tools: b.tool(state{RootsMode: mode}).Name != "",
	}}.open(ctx)
	if err == nil {
		return cs, unpin, opened, nil
	}
	unpin()
	if releaseErr := use.end(context.WithoutCancel(ctx)); releaseErr != nil {
		use.child.Log.Warn("cannot end an agent", "error", releaseErr)
	}
	return nil, nil, opened, err
}
