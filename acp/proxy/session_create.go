package proxy

import (
	"context"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// create asks the child to create a session, perhaps as a copy of the saved one.
func (s *session) create(ctx context.Context, r opening) (openResult, error) {
	params, err := s.lifecycleParams(r)
	if err != nil {
		return openResult{}, err
	}
	if r.Stop != nil { // the new session would lack the running turn
		if err := r.Stop(ctx); err != nil {
			return openResult{}, err
		}
	}
	c := r.use.child
	c.router.begin()
	defer func() {
		for _, m := range c.router.end() {
			c.reject(m, errUnknownSession)
		}
	}()
	s.updates.end()
	if r.method == backend.Fork {
		s.updates.set(discarding) // some agents replay the copy
	}
	created := &creation{use: r.use, method: string(r.method)}
	_, err = c.requestFunc(ctx, string(r.method), params, func(result backend.Raw, err error) {
		if err == nil {
			created.handleResponse(ctx, result)
		}
	})()
	if err != nil {
		if cs := created.abandon(); cs != nil { // the response came at the last moment
			cs.abandon(s)
			created.discard(cs.id)
		}
		return openResult{}, err
	}
	if created.err != nil {
		return openResult{}, created.err
	}
	return openResult{session: created.session, result: created.result}, nil
}

// creation is a request to the child to create a session. If the response comes after the request
// was abandoned, the session is closed again.
type creation struct {
	use    *use
	method string

	mu        sync.Mutex // guards the rest until the response has been handled
	abandoned bool
	session   *childSession
	result    backend.Raw
	err       error
}

// handleResponse takes the child's response. It runs on the read loop.
func (cr *creation) handleResponse(ctx context.Context, response backend.Raw) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		cr.err = fmt.Errorf("the agent answered %s without a session id", cr.method)
		return
	}
	cs := newChildSession(cr.use.child, id)
	cs.join(cr.use)
	cr.mu.Lock()
	cr.session, cr.result = cs, result
	late := cr.abandoned
	cr.mu.Unlock()
	if late {
		cr.discard(id)
	} else if cr.err = cs.attach(); cr.err == nil {
		cr.use.session.finishReplay(ctx)
	}
}

// abandon makes a later response be discarded. If the session has been created already, abandon
// returns it.
func (cr *creation) abandon() *childSession {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.abandoned = true
	return cr.session
}

// discard closes and deletes a session that is not needed. It does not wait for the responses.
func (cr *creation) discard(id backend.Raw) {
	c := cr.use.child
	c.log.Info("closing a session that the agent created too late")
	params := withSessionID(backend.Raw(`{}`), id)
	if c.info.Close {
		_ = c.request(context.Background(), protocol.SessionClose, params)
	}
	if c.info.Delete {
		_ = c.request(context.Background(), protocol.SessionDelete, params)
	}
}
