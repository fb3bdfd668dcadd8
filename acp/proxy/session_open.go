package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
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
	r := openRequest{Activation: a, state: decodeState(a.State)}
	r.previous, _ = a.Previous.(*session)
	r.session = newSession(r, &activation{proxy: p, host: h, roots: roots, params: a.Params,
		history: a.History})
	opened, cs, err := r.open(ctx)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, r.session.servers.relays.leave(r.session))
	}
	cs.child.unpin()
	opened.Notice = p.sandboxNotice() + opened.Notice
	return r.session, opened, nil
}

// openRequest says which session of a child is opened, and why: the client has opened ours, or the
// child has ended. It lives as long as that takes, and does not change.
type openRequest struct {
	backend.Activation
	session  *session
	state    state    // as saved; for a fork, that of its source
	previous *session // the activation to replace, nil if none
}

// replaced returns the child session of the activation to replace, nil if none.
func (r openRequest) replaced() *childSession {
	if r.previous == nil {
		return nil
	}
	return r.previous.current.running()
}

// usesReplay reports whether the child's replay is passed on: to show what is not stored, or to
// record what only the child knows.
func (r openRequest) usesReplay() bool {
	return r.Cause == backend.Load || r.Cause == backend.Resume && r.MustExist
}

// attempts returns the attempts to make in a child, in order: first with the session which the
// saved one replaces, and then those in the table of the package comment.
func (r openRequest) attempts(u *use) (attempts []*attempt) {
	given := r.session.given(u.mode)
	earlier := r.state.Earlier
	r.state.Earlier = nil
	a := attempt{openRequest: r, use: u, copied: r.state.keepsOther(given)}
	if earlier != nil && r.Cause != backend.Fork && !earlier.keepsOther(given) {
		due := *earlier
		due.HistoryDue = earlier.HistoryDue || !r.state.HistoryDue
		if info := u.child.info; info.Load || info.Resume {
			first := r
			first.state, first.Unlisted = due, false
			attempts = first.attempts(u)[:1]
		} else {
			a.earlier = &due
		}
	}
	for _, method := range r.methods(u.child.info, a.copied) {
		next := a
		next.method = method
		attempts = append(attempts, &next)
	}
	return attempts
}

// methods returns the requests that can open or copy the saved session in an agent, in order.
// copied says that only a copy can be used.
func (r openRequest) methods(a client.Agent, copied bool) (methods []backend.Cause) {
	known := r.state.key() != ""
	switch {
	case r.Cause == backend.New:
	case r.Cause == backend.Fork && !known:
	case r.Cause == backend.Fork || copied:
		if a.Fork {
			methods = append(methods, backend.Fork)
		}
	case known && a.Load && (r.usesReplay() || !a.Resume):
		methods = append(methods, backend.Load)
		if r.Cause == backend.Resume && a.Resume {
			methods = append(methods, backend.Resume)
		}
	case known && a.Resume:
		methods = append(methods, backend.Resume)
	}
	if !r.MustExist {
		methods = append(methods, backend.New)
	}
	return methods
}

// open connects the session to one of a child. It makes the possible attempts until one succeeds.
// If there is no error, the child is pinned.
func (r openRequest) open(
	ctx context.Context,
) (opened backend.Opened, cs *childSession, err error) {
	u, err := r.session.proxy.childFor(ctx, r)
	if err != nil {
		return opened, nil, err
	}
	c := u.child
	defer func() {
		if err == nil {
			return
		}
		c.unpin()
		if releaseErr := u.release(context.WithoutCancel(ctx)); releaseErr != nil {
			c.log.Warn("cannot end an agent", "error", releaseErr)
		}
	}()
	others := r.session.roots.Additional()
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
	if r.MustExist && worthAnotherTry(err) {
		c.log.Info("the agent rejected a request for a session that only it may know",
			"code", responseError(err).Code)
		err = fmt.Errorf("%w: %w", backend.ErrUnknownSession, err)
	}
	return opened, nil, err
}
