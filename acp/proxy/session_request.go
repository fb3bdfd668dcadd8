package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// openResult is the child session that a request has opened.
type openResult struct {
	session *childSession
	result  backend.Raw // of the lifecycle request, without the session id
	shown   int         // updates of its history that were passed on
	refused error       // of the same request with our tool server, nil if the child takes that
}

// tryWithoutTools is try, and a second one without the tool server if the child rejects that: some
// agents take no MCP servers, and do not say so.
func (s *session) tryWithoutTools(ctx context.Context, r *opening) (openResult, error) {
	o, err := s.try(ctx, *r)
	hasTaken := r.method != backend.New && r.state.SentTools
	if o.shown > 0 || hasTaken || !worthAnotherTry(err) || saysUnknown(responseError(err)) ||
		s.toolServer(r.mode, state{}).name == "" {
		return o, err
	}
	s.refusesTools.Store(true)
	r.systemParts = s.systemParts(r.use.child, r.mode)
	again, failed := s.try(ctx, *r)
	if failed != nil {
		s.refusesTools.Store(false)
		return again, err
	}
	again.refused = err
	return again, nil
}

// try opens a session in one way.
func (s *session) try(ctx context.Context, r opening) (openResult, error) {
	s.relays.forget()
	params, err := s.lifecycleParams(r)
	switch {
	case err != nil:
		return openResult{}, err
	case r.method == backend.Load || r.method == backend.Resume:
		return s.reopen(ctx, r, params)
	}
	return s.create(ctx, r, params)
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (s *session) lifecycleParams(r opening) (params backend.Raw, err error) {
	if r.mode == profiles.RootsByProtocol {
		params = strictjson.Set(s.params, protocol.AdditionalDirectories,
			backend.Encode(s.roots.Additional()))
	} else {
		params = strictjson.Remove(s.params, protocol.AdditionalDirectories)
	}
	// These requests need mcpServers. The client's own request may not have it.
	needsServers := r.method == backend.New || r.method == backend.Load
	if needsServers && strictjson.Find(params, protocol.MCPServers) == nil {
		params = strictjson.Set(params, protocol.MCPServers, backend.Raw(`[]`))
	}
	if params, err = s.withRelays(params); err != nil {
		return nil, err
	}
	if r.method == backend.New {
		r.state = state{}
	} else {
		params = withSessionID(params, r.state.ID)
	}
	params = s.withToolServer(params, s.toolServer(r.mode, r.state))
	return withSystemPrompt(params, r.systemParts), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request was abandoned, the session is closed again.
func (s *session) create(
	ctx context.Context, r opening, params backend.Raw,
) (o openResult, err error) {
	if r.Stop != nil { // the new session would lack the running turn
		if err := r.Stop(ctx); err != nil {
			return o, err
		}
	}
	c := r.use.child
	c.router.begin()
	defer func() {
		for _, m := range c.router.end() {
			c.reject(m.message, errUnknownSession)
		}
	}()
	s.updates.end()
	if r.method == backend.Fork {
		s.updates.set(discarding) // some agents replay the copy
	}
	var mu sync.Mutex // guards the next two until the response was handled
	var abandoned bool
	var created openResult
	var invalid error
	_, err = c.requestFunc(ctx, string(r.method), params, func(response backend.Raw, err error) {
		if err != nil {
			return
		}
		answered, err := r.created(response)
		mu.Lock()
		created = answered
		late := abandoned
		mu.Unlock()
		switch {
		case err != nil:
		case late:
			c.discard(answered.session.id)
		default:
			if err = answered.session.attach(); err == nil {
				s.finishReplay(ctx)
			}
		}
		invalid = err
	})()
	if err == nil {
		return created, invalid
	}
	mu.Lock()
	defer mu.Unlock()
	abandoned = true
	if cs := created.session; cs != nil { // the response came at the last moment
		cs.abandon(s)
		c.discard(cs.id)
	}
	return o, err
}

// created returns the session in a response of the child, which has created it.
func (r opening) created(response backend.Raw) (openResult, error) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return openResult{}, fmt.Errorf("the agent answered %s without a session id", r.method)
	}
	cs := newChildSession(r.use.child, id)
	r.use.opened = true
	cs.join(r.use)
	return openResult{session: cs, result: result}, nil
}

// discard closes and deletes a session that is not needed. It does not wait for the answers.
func (c *child) discard(id backend.Raw) {
	c.log.Info("closing a session that the agent created too late")
	params := withSessionID(backend.Raw(`{}`), id)
	if c.info.Close {
		_ = c.request(context.Background(), protocol.SessionClose, params)
	}
	if c.info.Delete {
		_ = c.request(context.Background(), protocol.SessionDelete, params)
	}
}

// reopen loads or resumes the child session that was saved.
func (s *session) reopen(
	ctx context.Context, r opening, params backend.Raw,
) (o openResult, err error) {
	cs, err := s.joinSaved(ctx, r)
	if err != nil {
		return o, err
	}
	uses := r.method == backend.Load && r.usesReplay()
	late := r.method == backend.Load && s.proxy.options.Profile.Replay.Late
	if uses {
		s.updates.set(replaying)
	} else {
		s.updates.set(discarding)
	}
	replayed := 0
	o.session = cs
	o.result, err = r.use.child.requestFunc(ctx, string(r.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				replayed = s.finishReplay(ctx)
			}
		})()
	if err == nil && late {
		s.awaitReplay(ctx, cs)
		replayed = s.finishReplay(ctx)
	}
	if responseError(err) == nil { // otherwise it has changed nothing
		cs.locked(func() { r.use.opened = true })
	}
	if err == nil {
		o.shown = replayed
	} else {
		o.shown, _ = s.updates.end() // not replayed: a late response may be setting it
		s.undoJoin(ctx, cs, err)
	}
	if !uses {
		o.shown = 0 // what came was dropped
	}
	return o, err
}

// joinSaved makes s a user of the child session that was saved, and routes its messages to s. It
// ends a turn that is running there.
func (s *session) joinSaved(ctx context.Context, r opening) (*childSession, error) {
	c, current := r.use.child, r.current()
	if current != nil && r.Stop != nil {
		// The child cannot open a session while a turn is running in it, and the turn's updates
		// would be mixed with the replay.
		if err := r.Stop(ctx); err != nil {
			return nil, err
		}
	}
	if current != nil && current.key != r.state.key() {
		current = nil
	}
	if current != nil && current.child == c {
		current.join(r.use)
		return current, nil
	}
	cs := newChildSession(c, r.state.ID)
	cs.join(r.use)
	err := cs.attach()
	if errors.Is(err, errDuplicateID) {
		err = errAlreadyOpen
	}
	return cs, err
}

var errAlreadyOpen = errors.New(
	"the agent's session is already open here under another id: close that one first")

// undoJoin undoes joinSaved after the lifecycle request has failed. If there was no response, the
// child may have opened the session for s anyway.
func (s *session) undoJoin(ctx context.Context, cs *childSession, err error) {
	if left := cs.abandon(s); left > 0 || responseError(err) != nil {
		return
	}
	lasting := context.WithoutCancel(ctx)
	if _, err := cs.child.closeSession(lasting, cs.id, backend.Raw(`{}`)); err != nil {
		cs.child.log.Warn("cannot close a session of the agent", "error", err)
	}
}

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay has ended. The child writes the rest of a replay while it
// waits for input, so the replay has ended when the child answers a request without having replayed
// more.
func (s *session) awaitReplay(ctx context.Context, cs *childSession) {
	ctx, cancel := context.WithTimeoutCause(ctx, cs.child.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for before := -1; ; {
		now := s.updates.soFar()
		if now == before {
			return
		}
		before = now
		_, err := cs.child.request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			cs.child.log.Debug("the agent may still replay a conversation", "error", err)
			return
		}
	}
}

// finishReplay ends the replay, passes on the latest states, and returns how many updates were
// replayed. Usually the response has just been read, and it runs on the read loop.
func (s *session) finishReplay(ctx context.Context) (replayed int) {
	replayed, states := s.updates.end()
	for _, state := range states {
		if err := s.showUpdate(ctx, s.host, state); err != nil {
			s.proxy.log.Debug("cannot pass on a state of the agent", "kind", state.Kind,
				"error", err)
		}
	}
	return replayed
}
