package proxy

import (
	"context"
	"errors"
	"fmt"

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
	// systemParts are what the request adds to the system prompt, nil for nothing.
	systemParts []contextPart
	refused     error // of the same request with our tool server, nil if the child takes that
}

// tryWithoutTools is try, and a second one without the tool server if the child rejects that: some
// agents take no MCP servers, and do not say so.
func (s *session) tryWithoutTools(ctx context.Context, w way) (openResult, error) {
	o, err := s.try(ctx, w)
	hasTaken := w.method != backend.New && w.state.SentTools
	if o.shown > 0 || hasTaken || !worthAnotherTry(err) || saysUnknown(responseError(err)) ||
		s.toolServer(w.use.mode, state{}).name == "" {
		return o, err
	}
	s.refusesTools.Store(true)
	again, failed := s.try(ctx, w)
	if failed != nil {
		s.refusesTools.Store(false)
		return again, err
	}
	again.refused = err
	return again, nil
}

// try opens a session in one way.
func (s *session) try(ctx context.Context, w way) (o openResult, err error) {
	s.relays.forget()
	params, err := s.lifecycleParams(w)
	if err != nil {
		return o, err
	}
	parts := s.systemParts(w.use.child, w.use.mode)
	params = withSystemPrompt(params, parts)
	if w.method == backend.Load || w.method == backend.Resume {
		o, err = s.reopen(ctx, w, params)
	} else {
		o, err = s.create(ctx, w, params)
	}
	o.systemParts = parts
	return o, err
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (s *session) lifecycleParams(w way) (params backend.Raw, err error) {
	if w.use.mode == profiles.RootsByProtocol {
		params = strictjson.Set(s.params, protocol.AdditionalDirectories,
			backend.Encode(s.roots.Additional()))
	} else {
		params = strictjson.Remove(s.params, protocol.AdditionalDirectories)
	}
	// These requests need mcpServers. The client's own request may not have it.
	needsServers := w.method == backend.New || w.method == backend.Load
	if needsServers && strictjson.Find(params, protocol.MCPServers) == nil {
		params = strictjson.Set(params, protocol.MCPServers, backend.Raw(`[]`))
	}
	if params, err = s.withRelays(params); err != nil {
		return nil, err
	}
	if w.method == backend.New {
		w.state = state{}
	} else {
		params = withSessionID(params, w.state.ID)
	}
	return s.withToolServer(params, s.toolServer(w.use.mode, w.state)), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request was abandoned, the session is closed again.
func (s *session) create(ctx context.Context, w way, params backend.Raw) (o openResult, err error) {
	if w.Stop != nil { // the new session would lack the running turn
		if err := w.Stop(ctx); err != nil {
			return o, err
		}
	}
	c := w.use.child
	c.router.begin()
	defer func() {
		for _, m := range c.router.end() {
			c.reject(m.message, errUnknownSession)
		}
	}()
	s.updates.end()
	if w.method == backend.Fork {
		s.updates.set(discarding) // some agents replay the copy
	}
	var created openResult // as soon as answered is closed
	var invalid error
	answered := make(chan struct{})
	_, err = c.requestFunc(ctx, string(w.method), params, func(response backend.Raw, err error) {
		defer close(answered)
		if invalid = err; err != nil {
			return
		}
		if created, invalid = w.created(response); invalid == nil {
			s.finishReplay(ctx)
		}
	})()
	if err == nil {
		return created, invalid
	}
	go func() {
		select {
		case <-answered:
		case <-c.done:
			return
		}
		if invalid == nil {
			created.session.abandon(s)
			c.discard(created.session.id)
		}
	}()
	return o, err
}

// created returns the session in a response of the child, which has created it.
func (w way) created(response backend.Raw) (openResult, error) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return openResult{}, fmt.Errorf("the agent answered %s without a session id", w.method)
	}
	cs := newChildSession(w.use.child, id)
	w.use.opened = true
	cs.join(w.use)
	return openResult{session: cs, result: result}, cs.attach()
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
func (s *session) reopen(ctx context.Context, w way, params backend.Raw) (o openResult, err error) {
	cs, err := s.joinSaved(ctx, w)
	if err != nil {
		return o, err
	}
	uses := w.method == backend.Load && w.usesReplay()
	late := w.method == backend.Load && s.proxy.options.Profile.Replay.Late
	if uses {
		s.updates.set(replaying)
	} else {
		s.updates.set(discarding)
	}
	replayed := 0
	o.session = cs
	o.result, err = w.use.child.requestFunc(ctx, string(w.method), params,
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
		cs.locked(func() { w.use.opened = true })
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
func (s *session) joinSaved(ctx context.Context, w way) (*childSession, error) {
	c, current := w.use.child, w.current()
	if current != nil && w.Stop != nil {
		// The child cannot open a session while a turn is running in it, and the turn's updates
		// would be mixed with the replay.
		if err := w.Stop(ctx); err != nil {
			return nil, err
		}
	}
	if current != nil && current.key != w.state.key() {
		current = nil
	}
	if current != nil && current.child == c {
		current.join(w.use)
		return current, nil
	}
	cs := newChildSession(c, w.state.ID)
	cs.join(w.use)
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
