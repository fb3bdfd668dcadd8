package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// openRequest says what a session of the child is opened for.
type openRequest struct {
	cause    backend.Cause
	state    state                           // as saved; for a fork, that of its source
	previous *session                        // the activation to replace, nil if none
	stop     func(ctx context.Context) error // ends its turn

	mustExist       bool // do not create a session if the child does not know that of state
	historyOptional bool // the history need not be readable
	hideReplay      bool // the child's replay must not be shown
	reusable        bool // the child session of previous can be used as it is
	copied          bool // the child session keeps directories that it must not have any more: a copy takes its place

	systemParts []contextPart // what the child is told in its system prompt
}

// current returns the child session of the activation to replace, nil if none.
func (r openRequest) current() *childSession {
	if r.previous == nil {
		return nil
	}
	return r.previous.running()
}

// showsReplay reports whether a replay by the child is shown to the client. If it lacks something,
// or if its end is unknown, the stored history is shown instead.
func (r openRequest) showsReplay() bool {
	return r.cause == backend.Load && !r.state.Partial && !r.hideReplay
}

// openMethod is a way to open a session of the child: a lifecycle request, or reuse.
type openMethod string

const (
	byNew    openMethod = openMethod(backend.New)
	byLoad   openMethod = openMethod(backend.Load)
	byResume openMethod = openMethod(backend.Resume)
	byFork   openMethod = openMethod(backend.Fork)
	byReuse  openMethod = "reuse" // use the session of the activation to replace
)

// methods returns the ways to try, in order, as in the table of the package comment.
func (r openRequest) methods(a client.Agent) []openMethod {
	var methods []openMethod
	known := r.state.key() != ""
	switch {
	case r.cause == backend.New:
	case r.cause == backend.Fork:
		if known && a.Fork {
			methods = append(methods, byFork)
		}
	case r.copied:
		if a.Fork {
			methods = append(methods, byFork)
		}
	case known && a.Load && (r.showsReplay() || !a.Resume):
		methods = append(methods, byLoad)
	case known && a.Resume:
		methods = append(methods, byResume)
	}
	if r.reusable {
		methods = append(methods, byReuse)
	}
	if r.mustExist {
		return methods
	}
	return append(methods, byNew)
}

// openResult is the child session that was obtained, and how.
type openResult struct {
	session *childSession
	method  openMethod
	roots   RootsMode
	result  backend.Raw // of the lifecycle request, without the session id
	shown   int         // updates of its history that the client was shown
}

// open connects s to a session of a child. It tries the possible ways until one succeeds. Without
// an error the child is in use.
func (s *session) open(ctx context.Context, r openRequest) (opened backend.Opened, c *child, err error) {
	c, mode, err := s.proxy.childFor(ctx, s, r)
	if err != nil {
		return opened, nil, err
	}
	defer func() {
		if err != nil {
			c.unclaim(s)
			c.unuse()
		}
	}()
	if others := s.roots.Additional(); mode == RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional directories: it is told about them in words",
			"agent", c.info.Name, "directories", others.Strings())
	}
	r.copied = r.state.keepsOther(s.given(mode))
	r.reusable = !r.copied && s.canReuse(c, mode, r)
	r.systemParts = s.systemParts(c, mode)
	methods := r.methods(c.info)
	if len(methods) == 0 {
		err = backend.ErrUnknownSession
	}
	for i, method := range methods {
		var o openResult
		if o, err = s.try(ctx, method, c, mode, r); err == nil {
			opened, err = s.commit(ctx, o, r)
			return opened, c, err
		}
		if i+1 == len(methods) || !worthAnotherTry(err) || o.shown > 0 {
			break
		}
		// Its message is not logged, because it may quote the request with the secrets of MCP
		// servers.
		c.log.Warn("the agent rejected a request for a session: trying another one",
			"rejected", method, "code", responseError(err).Code, "next", methods[i+1])
	}
	if releaseErr := c.release(context.WithoutCancel(ctx)); releaseErr != nil {
		c.log.Warn("cannot end an agent", "error", releaseErr)
	}
	if r.mustExist && worthAnotherTry(err) {
		s.proxy.log.Info("the agent rejected a request for a session that only it may know", "error", err)
		err = backend.ErrUnknownSession
	}
	return opened, c, err
}

// try opens a session in one way.
func (s *session) try(ctx context.Context, method openMethod, c *child, mode RootsMode, r openRequest) (openResult, error) {
	switch method {
	case byReuse:
		cs := r.current()
		if cs == nil {
			return openResult{}, &endedError{Name: c.process.Name(), InSession: true}
		}
		cs.join(s)
		_ = c.release(ctx) // cs has the child already
		return openResult{session: cs, method: method, roots: mode, result: cs.currentResult()}, nil
	case byLoad, byResume:
		return s.reopen(ctx, method, c, mode, r)
	default:
		return s.create(ctx, method, c, mode, r)
	}
}

// worthAnotherTry reports whether to try another way after an error. Agents use many codes for
// sessions that they do not know.
func worthAnotherTry(err error) bool {
	e := responseError(err)
	return e != nil && e.Code != protocol.CodeAuthRequired && e.Code != jsonrpc.CodeCancelled
}

// canReuse reports whether the child session of the activation to replace can be used without a
// lifecycle request, because there is nothing new that only such a request could tell the child.
func (s *session) canReuse(c *child, mode RootsMode, r openRequest) bool {
	current := r.current()
	if current == nil || current.child != c || r.cause == backend.Fork || !s.sameServers(r.previous) {
		return false
	}
	hasTools := r.state.SentTools || s.toolServer(mode, false).name == ""
	return mode == RootsByContext && hasTools || s.roots.Equal(r.previous.roots)
}

// given returns the additional directories that the child is given, so that it may write there.
func (s *session) given(mode RootsMode) workspace.Dirs {
	if mode == RootsByContext {
		return workspace.Dirs{}
	}
	return s.roots.Additional()
}

// sameServers reports whether the client gave both sessions the same MCP servers.
func (s *session) sameServers(other *session) bool {
	return bytes.Equal(mcpServers(s.params), mcpServers(other.params))
}

// lifecycleParams returns the params of a lifecycle request to the child about the session of
// saved. byNew names none. system is what the child is told in its system prompt.
func (s *session) lifecycleParams(method openMethod, mode RootsMode, saved state, system []contextPart) (backend.Raw, error) {
	params, err := paramsWithRoots(s.params, mode, backend.Cause(method), s.roots)
	if err != nil {
		return nil, err
	}
	if params, err = s.withRelays(params); err != nil {
		return nil, err
	}
	if params, err = s.withToolServer(params, s.toolServer(mode, method != byNew && saved.SentTools)); err != nil {
		return nil, err
	}
	if params, err = withSystemPrompt(params, system); err != nil || method == byNew {
		return params, err
	}
	return withSessionID(params, saved.ID)
}

// reopen loads or resumes the child session that was saved.
func (s *session) reopen(ctx context.Context, method openMethod, c *child, mode RootsMode, r openRequest) (o openResult, err error) {
	params, err := s.lifecycleParams(method, mode, r.state, r.systemParts)
	if err != nil {
		return o, err
	}
	cs, err := s.joinSaved(ctx, c, r)
	if err != nil {
		return o, err
	}
	shows := method == byLoad && r.showsReplay()
	if shows {
		s.setUpdateMode(replaying)
	} else {
		s.setUpdateMode(discarding)
	}
	cs.setRequester(s)
	replayed := 0
	o = openResult{session: cs, method: method, roots: mode}
	o.result, err = c.callFunc(ctx, string(method), params, func(_ backend.Raw, err error) {
		if err == nil {
			replayed = s.finishReplay(ctx, method)
		}
	})()
	if err == nil {
		cs.setResult(o.result)
		o.shown = replayed
	} else {
		o.shown, _ = s.endReplay(live) // not replayed: a late response may be setting it
		s.undoJoin(ctx, cs, err)
	}
	if !shows {
		o.shown = 0 // what came was dropped
	}
	return o, err
}

// undoJoin undoes joinSaved after the lifecycle request has failed. Without a response, the child
// may have opened the session for s all the same.
func (s *session) undoJoin(ctx context.Context, cs *childSession, err error) {
	left, before := cs.abandon(s)
	switch {
	case responseError(err) != nil:
	case before != nil:
		before.restore(ctx, cs, s)
	case left == 0:
		if _, err := cs.child.closeSession(context.WithoutCancel(ctx), cs.id, backend.Raw(`{}`)); err != nil {
			cs.child.log.Warn("cannot close a session of the agent", "error", err)
		}
	}
}

// joinSaved makes s a user of the child session that was saved, and routes its messages to s. It
// ends a turn that is running there.
func (s *session) joinSaved(ctx context.Context, c *child, r openRequest) (*childSession, error) {
	current := r.current()
	if current != nil && current.key != r.state.key() {
		current = nil
	}
	if current != nil && r.stop != nil {
		// The child cannot open a session with a running turn, and the turn's updates would be
		// mixed with the replay.
		if err := r.stop(ctx); err != nil {
			return nil, err
		}
	}
	if current != nil && current.child == c {
		current.join(s)
		current.setOwner(s)
		_ = c.release(ctx) // current has the child already
		return current, nil
	}
	cs := newChildSession(c, r.state.ID)
	cs.join(s)
	err := cs.attach()
	if errors.Is(err, errDuplicateID) {
		err = errAlreadyOpen
	}
	return cs, err
}

var errAlreadyOpen = errors.New("the agent's session is already open here under another id: close that one first")

// finishReplay ends the replay when the response is read, passes on the latest states, and returns
// how many updates were replayed. It runs on the read loop.
func (s *session) finishReplay(ctx context.Context, method openMethod) (replayed int) {
	next := live
	if method == byLoad && s.proxy.options.Profile.LateReplay {
		next = discardingLate
	}
	replayed, states := s.endReplay(next)
	for _, state := range states {
		if err := s.passOn(ctx, s.host, state); err != nil {
			s.proxy.log.Debug("a state of the agent was not passed on", "kind", state.Kind, "error", err)
		}
	}
	return replayed
}

// restore opens the child session for s again after other, which was to replace s, may have changed
// its directories and MCP servers.
func (s *session) restore(ctx context.Context, cs *childSession, other *session) {
	c := cs.child
	if c.ended.Load() || s.roots.Equal(other.roots) && s.sameServers(other) {
		return
	}
	method := byResume
	if !c.info.Resume {
		method = byLoad
		s.setUpdateMode(discardingLate)
	}
	s.mu.Lock()
	saved := s.state
	s.mu.Unlock()
	saved.ID = cs.id
	params, err := s.lifecycleParams(method, saved.RootsMode, saved, s.systemParts(c, saved.RootsMode))
	if err == nil {
		lasting := context.WithoutCancel(ctx)
		ctx, cancel := context.WithTimeoutCause(lasting, c.limits.endTimeout, errNoAnswer)
		defer cancel()
		_, err = c.callFunc(ctx, string(method), params, func(backend.Raw, error) { s.finishReplay(lasting, method) })()
	}
	if err == nil {
		return
	}
	if !errors.Is(err, errNoAnswer) { // otherwise the replay may still come
		s.setUpdateMode(live)
	}
	c.log.Warn("the agent may have wrong directories and MCP servers for a session: load it again", "error", err)
}

// create has the child create a session, as a copy of the one that was saved if method is byFork.
func (s *session) create(ctx context.Context, method openMethod, c *child, mode RootsMode, r openRequest) (openResult, error) {
	params, err := s.lifecycleParams(method, mode, r.state, r.systemParts)
	if err != nil {
		return openResult{}, err
	}
	if r.copied && r.stop != nil { // the copy would lack the running turn
		if err := r.stop(ctx); err != nil {
			return openResult{}, err
		}
	}
	c.router.begin()
	defer func() {
		for _, m := range c.router.end() {
			c.reject(m, errUnknownSession)
		}
	}()
	s.setUpdateMode(live)
	if method == byFork {
		s.setUpdateMode(discarding) // some agents replay the copy
	}
	created := &creation{session: s, child: c, method: method}
	_, err = c.callFunc(ctx, string(method), params, func(result backend.Raw, err error) {
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
	cs, err := created.get()
	if err != nil {
		return openResult{}, err
	}
	return openResult{session: cs, method: method, roots: mode, result: cs.result}, nil
}

// creation is a session that the child was asked to create. If the response comes after the request
// was abandoned, the session is closed again.
type creation struct {
	session *session
	child   *child
	method  openMethod

	mu        sync.Mutex // guards the rest, which the read loop sets
	abandoned bool
	created   *childSession
	err       error
}

// handleResponse takes the child's response. It runs on the read loop.
func (cr *creation) handleResponse(ctx context.Context, response backend.Raw) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		cr.set(nil, fmt.Errorf("the agent answered %s without a session id", cr.method))
		return
	}
	cs := newChildSession(cr.child, id)
	cs.result = result
	cs.join(cr.session)
	if !cr.set(cs, nil) {
		cr.discard(id)
		return
	}
	if err := cs.attach(); err != nil {
		cr.set(nil, err)
		return
	}
	cr.session.finishReplay(ctx, cr.method)
}

// set sets what get returns. It returns false if the request was abandoned.
func (cr *creation) set(created *childSession, err error) bool {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.created, cr.err = created, err
	return !cr.abandoned
}

// get returns the session after the response.
func (cr *creation) get() (*childSession, error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return cr.created, cr.err
}

// abandon has a later response discarded. If the session has been created already, abandon returns
// it.
func (cr *creation) abandon() *childSession {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.abandoned = true
	return cr.created
}

// discard closes and deletes a session that is not needed. It does not wait for the responses.
func (cr *creation) discard(id backend.Raw) {
	cr.child.log.Info("closing a session that the agent created too late")
	params, err := withSessionID(backend.Raw(`{}`), id)
	if err != nil {
		return
	}
	if cr.child.info.Close {
		_ = cr.child.call(context.Background(), protocol.SessionClose, params)
	}
	if cr.child.info.Delete {
		_ = cr.child.call(context.Background(), protocol.SessionDelete, params)
	}
}

// commit makes the child session that of s, and announces its roots and commands. If it fails, s
// leaves the child session.
func (s *session) commit(ctx context.Context, o openResult, r openRequest) (backend.Opened, error) {
	if err := s.adopt(ctx, o, r); err != nil {
		if _, leaveErr := o.session.leave(context.WithoutCancel(ctx), s, backend.Raw(`{}`)); leaveErr != nil {
			s.proxy.log.Warn("cannot close a session of the agent", "error", leaveErr)
		}
		return backend.Opened{}, err
	}
	s.relays.publish(s)
	s.announced.outdated(s.host.Catalog())
	s.announceRoots(ctx, s.host)
	opened := backend.Opened{Result: o.result}
	if o.shown > 0 {
		opened.Replay = backend.FromBackend
	}
	if r.copied && r.cause != backend.Fork {
		opened.Superseded = r.state.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it that of s, and leaves the one before.
func (s *session) adopt(ctx context.Context, o openResult, r openRequest) error {
	saved, pendingHistory, err := s.plan(o, r)
	if err != nil {
		return err
	}
	if err := s.save(ctx, saved); err != nil {
		return err
	}
	before, ok := s.replace(o.session, saved, pendingHistory)
	if !ok {
		return errSessionClosed
	}
	if before != nil {
		_, err = before.leave(ctx, s, backend.Raw(`{}`))
		return err
	}
	return nil
}

// plan returns the state to save for a child session, and the conversation that the child must be
// told in its next prompt.
func (s *session) plan(o openResult, r openRequest) (saved state, pendingHistory string, err error) {
	if o.method != byNew {
		saved = r.state
	}
	saved.ID, saved.RootsMode = o.session.id, o.roots
	saved.SentTools = s.toolServer(o.roots, saved.SentTools).name != ""
	commands, _ := s.rootCommands(s.announced.childCommands())
	saved.Offered = len(commands) > 0
	lacksHistory := o.method == byNew && r.cause != backend.New
	if lacksHistory || saved.HistoryDue {
		pendingHistory, err = conversation(s.history, s.proxy.options.limits.maxContext, s.unsentBlocks())
		if err != nil && !r.historyOptional {
			return state{}, "", err
		}
		if err != nil { // the child is told in a later prompt
			s.proxy.log.Warn("the restarted agent does not know the conversation so far: the history cannot be read", "error", err)
			pendingHistory = ""
		}
		saved.HistoryDue = pendingHistory != "" || err != nil
		saved.Partial = saved.Partial || saved.HistoryDue
	}
	if o.roots != RootsByContext {
		saved.SentRoots = ""
	}
	if s.proxy.options.Profile.KeepsRoots {
		saved.Granted = dirDigests(s.given(o.roots))
	}
	if o.method == byNew {
		for _, part := range r.systemParts {
			*part.topic.sent(&saved) = part.digest
		}
	}
	return saved, pendingHistory, nil
}

// revive opens the child's session again after the child has ended, and returns it in use.
func (s *session) revive(ctx context.Context) (*childSession, error) {
	select {
	case s.reviving <- struct{}{}:
		defer func() { <-s.reviving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if cs := s.use(); cs != nil {
		return cs, nil
	}
	s.mu.Lock()
	before, saved, closed := s.current, s.state, s.closed
	s.mu.Unlock()
	if closed {
		return nil, errSessionClosed
	}
	if err := before.child.awaitEnd(ctx); err != nil {
		return nil, err
	}
	r := openRequest{cause: backend.Resume, state: saved, historyOptional: true}
	_, c, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	cs := s.current
	s.mu.Unlock()
	if cs == nil {
		c.unuse()
		return nil, errSessionClosed
	}
	s.proxy.log.Info("a session continues with a restarted agent", "child", cs.child.process.Name())
	for _, change := range before.settings.list() {
		if err := cs.repeat(ctx, change); err != nil {
			s.proxy.log.Warn("the restarted agent rejected a setting", "method", change.method, "error", err)
		}
	}
	return cs, nil
}
