package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/workspace"
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
	opened, cs, err := r.open(ctx)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, b.servers.relays.leave(b))
	}
	cs.child.uses.unpin()
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

// attempts returns the attempts to make in a child, in order: first with the session which the
// saved one replaces, and then those in the table of the package comment.
func (r *openRequest) attempts(u *childUse) (attempts []*attempt) {
	given, info := r.bridge.given(u.mode), u.child.info
	target, earlier := r.saved, r.earlier(given)
	target.Earlier = nil
	if methods := r.reopening(info); earlier != nil && len(methods) > 0 {
		attempts = append(attempts, &attempt{request: r, use: u, method: methods[0],
			target: *earlier})
		earlier = nil // until the child rejects it
	}
	keepsOther := target.keepsOther(given)
	for _, method := range r.methods(info, keepsOther) {
		a := &attempt{request: r, use: u, method: method, target: target, earlier: earlier}
		if method == backend.New {
			a.target = state{From: target.From}
		}
		if keepsOther && r.cause != backend.Fork {
			a.superseded = &target
		}
		attempts = append(attempts, a)
	}
	return attempts
}

// earlier returns the session of the child which the saved one replaces until the child opens that
// again. It returns nil if no such session may be opened.
func (r *openRequest) earlier(given workspace.Dirs) *state {
	if r.saved.Earlier == nil || r.cause == backend.Fork || r.saved.Earlier.keepsOther(given) {
		return nil
	}
	earlier := *r.saved.Earlier
	earlier.HistoryDue = earlier.HistoryDue || !r.saved.HistoryDue
	return &earlier
}

// reopening returns the requests that can open a saved session in an agent, in order.
func (r *openRequest) reopening(a client.Agent) (methods []backend.Cause) {
	if a.Load && (r.usesReplay() || !a.Resume) {
		methods = append(methods, backend.Load)
	}
	if a.Resume && (r.cause == backend.Resume || !a.Load) {
		methods = append(methods, backend.Resume)
	}
	return methods
}

// methods returns the requests that can open or copy the saved session in an agent, in order.
// onlyCopy says that the session itself cannot be used.
func (r *openRequest) methods(a client.Agent, onlyCopy bool) (methods []backend.Cause) {
	switch {
	case r.saved.key() == "" || r.cause == backend.New:
	case r.cause != backend.Fork && !onlyCopy:
		methods = r.reopening(a)
	case a.Fork:
		methods = append(methods, backend.Fork)
	}
	if !r.mustExist {
		methods = append(methods, backend.New)
	}
	return methods
}

// open connects the session to one of a child. It makes the possible attempts until one succeeds.
// If there is no error, the child is pinned.
func (r *openRequest) open(
	ctx context.Context,
) (opened backend.Opened, cs *childSession, err error) {
	u, err := r.bridge.proxy.childFor(ctx, r)
	if err != nil {
		return opened, nil, err
	}
	c := u.child
	defer func() {
		if err == nil {
			return
		}
		c.uses.unpin()
		if releaseErr := u.release(context.WithoutCancel(ctx)); releaseErr != nil {
			c.log.Warn("cannot end an agent", "error", releaseErr)
		}
	}()
	others := r.bridge.roots.Additional()
	if u.mode == profiles.RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", c.info.Name, "folders",
			others.Strings())
	}
	attempts := r.attempts(u)
	err = backend.ErrUnknownSession // without an attempt
	for i, a := range attempts {
		var o openResult
		if o, err = a.try(ctx); err == nil {
			opened, err = a.commit(ctx, o)
			return opened, o.session, err
		}
		if i+1 == len(attempts) || !worthAnotherTry(err) || o.shown > 0 {
			break
		}
		// Its message is not logged, because it may quote the request with the secrets of MCP
		// servers.
		c.log.Warn("the agent rejected a request for a session: trying another one", "rejected",
			a.method, "code", responseError(err).Code, "next", attempts[i+1].method)
		attempts[i+1].follow(a, responseError(err))
	}
	if r.mustExist && worthAnotherTry(err) {
		c.log.Info("the agent rejected a request for a session that only it may know",
			"code", responseError(err).Code)
		err = fmt.Errorf("%w: %w", backend.ErrUnknownSession, err)
	}
	return opened, nil, err
}
