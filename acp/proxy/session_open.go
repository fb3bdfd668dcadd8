package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Open implements [backend.Backend]: it opens a session of the child.
func (p *proxy) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	roots, err := parseRoots(a.Params)
	if err != nil {
		return nil, backend.Opened{}, err
	}
	if w := h.Workspace(); w != nil {
		roots = roots.Granting(w.Roots().Grant)
	}
	p.addSecrets(a.Params)
	saved := decodeState(a.State)
	previous, _ := a.Previous.(*bridge)
	b := newBridge(&activation{proxy: p, host: h, roots: roots, params: a.Params,
		history: a.History}, previous, saved, a.Cause)
	r := &openRequest{bridge: b, previous: previous, saved: saved, cause: a.Cause,
		mustExist: a.MustExist, unlisted: a.Unlisted, stop: a.Stop}
	opened, s, err := r.open(ctx)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, b.servers.relays.leave(b))
	}
	s.release()
	opened.Notice = p.sandboxNotice() + opened.Notice
	return b, opened, nil
}

// openRequest says which session of a child is opened, and why: the client has opened ours, or the
// child has ended. It lives as long as that takes, and does not change.
type openRequest struct {
	bridge   *bridge
	previous *bridge // the activation to replace, nil if none
	saved    state   // for a fork, that of its source

	// See backend.Activation.
	cause               backend.Cause
	mustExist, unlisted bool
	stop                func(context.Context) error // nil if no turn can be running
}

// replaced returns the child session of the activation to replace, nil if none.
func (r *openRequest) replaced() *childSession {
	if r.previous == nil {
		return nil
	}
	return r.previous.current.running()
}

// usesReplay reports whether the child's replay is passed on: to show what is not stored, or to
// record what only the child knows.
func (r *openRequest) usesReplay() bool {
	return r.cause == backend.Load || r.cause == backend.Resume && r.mustExist
}

// open connects the bridge to a session of a child.
func (r *openRequest) open(ctx context.Context) (backend.Opened, pinned, error) {
	u, pin, err := r.bridge.proxy.childFor(ctx, r)
	if err != nil {
		return backend.Opened{}, pinned{}, err
	}
	tool := r.bridge.servers.tool(state{RootsMode: u.mode})
	opened, cs, err := childOpening{request: r, use: u, terms: terms{info: u.child.info,
		mode: u.mode, given: r.bridge.given(u.mode), tools: tool.name != ""}}.open(ctx)
	if err == nil {
		return opened, pinned{cs, pin}, nil
	}
	pin.release()
	if releaseErr := u.release(context.WithoutCancel(ctx)); releaseErr != nil {
		u.child.log.Warn("cannot end an agent", "error", releaseErr)
	}
	return opened, pinned{}, err
}
