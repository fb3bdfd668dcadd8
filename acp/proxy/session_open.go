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
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// wanted is what a session of the child's is wanted for.
type wanted struct {
	cause    backend.Cause
	state    state                           // what was saved, of the source if it is a fork
	previous *session                        // the activation that is replaced, nil if there is none
	stop     func(ctx context.Context) error // ends its turn
	unsaid   int                             // blocks at the end of the history that the child is about to be sent
	unread   bool                            // it goes on even if the history cannot be read
	goesOn   bool                            // the session of the activation before serves as it is
	unfit    bool                            // the child's replay is not to be shown
}

// step is a way to a session of the child's.
type step string

const (
	byNew    step = step(backend.New)
	byLoad   step = step(backend.Load)
	byResume step = step(backend.Resume)
	byFork   step = step(backend.Fork)
	byGoOn   step = "go on" // with the session of the activation that is replaced
)

// steps are the ways to try, in order. It is the table in the package comment.
func steps(w wanted, a client.Agent) []step {
	var ways []step
	known := w.state.key() != ""
	switch {
	case w.cause == backend.New:
	case w.cause == backend.Fork:
		if known && a.Fork {
			ways = append(ways, byFork)
		}
	case known && a.Load && (w.shows() || !a.Resume):
		ways = append(ways, byLoad)
	case known && a.Resume:
		ways = append(ways, byResume)
	}
	if w.goesOn {
		ways = append(ways, byGoOn)
	}
	return append(ways, byNew)
}

// shows reports whether a replay by the child is for the client. One that lacks the beginning or something else, or whose
// end cannot be told, is not: it would take the place of ours, which is whole.
func (w wanted) shows() bool { return w.cause == backend.Load && !w.state.Partial && !w.unfit }

// connection is a session of the child's that was got.
type connection struct {
	link   *link
	by     step
	way    RootsMode
	result backend.Raw
	shown  int // updates of its history that the client was shown
}

// connect gives the activation a session of the child's.
func (s *session) connect(ctx context.Context, w wanted) (opened backend.Opened, err error) {
	before := w.link()
	a, how, err := s.proxy.childFor(ctx, s.roots, before)
	if err != nil {
		return backend.Opened{}, err
	}
	s.warn(a, how)
	w.goesOn = s.canGoOn(a, how, w)
	ways := steps(w, a.info)
	for i, by := range ways {
		var c connection
		if c, err = s.take(ctx, by, a, how, w); err == nil {
			return s.settle(ctx, c, w)
		}
		if i+1 == len(ways) || !surmountable(err) || c.shown > 0 {
			break
		}
		// Not with its words: they may quote the request, whose MCP servers have secrets.
		a.log.Warn("the agent refused a session: another way is tried", "refused", by, "code", refusal(err).Code, "next", ways[i+1])
	}
	if releaseErr := a.release(context.WithoutCancel(ctx)); releaseErr != nil {
		a.log.Warn("ending an agent", "error", releaseErr)
	}
	return backend.Opened{}, s.proxy.explained(err)
}

// warn says in the log what the child is not told by the protocol.
func (s *session) warn(a *agent, how RootsMode) {
	if others := s.roots.Additional(); how == RootsByContext && others.Len() > 0 {
		a.log.Warn("the agent does not support additional directories: it is told of them before its next prompt",
			"agent", a.info.Name, "directories", others.Strings())
	}
}

// link is the link of the activation that is replaced, nil if there is none.
func (w wanted) link() *link {
	if w.previous == nil {
		return nil
	}
	return w.previous.living()
}

// canGoOn reports whether the child's session of the activation before serves this one as it is: nothing
// would have to be said to the child that only a lifecycle request can.
func (s *session) canGoOn(a *agent, how RootsMode, w wanted) bool {
	before := w.link()
	return before != nil && before.agent == a && w.cause != backend.Fork &&
		(s.roots.Equal(w.previous.roots) || how == RootsByContext && s.toolsFor(how).name == "" && w.previous.toolsFor(how).name == "") &&
		s.hasServersOf(w.previous)
}

// asksAs reports whether a lifecycle request of s asks for what one of other asks for.
func (s *session) asksAs(other *session) bool {
	return s.roots.Equal(other.roots) && s.hasServersOf(other)
}

func (s *session) hasServersOf(other *session) bool {
	return bytes.Equal(serversIn(s.params), serversIn(other.params))
}

// take tries one way.
func (s *session) take(ctx context.Context, by step, a *agent, how RootsMode, w wanted) (connection, error) {
	switch by {
	case byGoOn:
		l := w.link()
		if l == nil {
			return connection{}, &EndedError{Name: a.process.Name()}
		}
		l.join(s)
		a.holds.Add(-1) // the link has one
		return connection{link: l, by: by, way: how, result: l.settings.current(l.opened())}, nil
	case byLoad, byResume:
		return s.reopen(ctx, by, a, how, w)
	default:
		return s.create(ctx, by, a, how, w)
	}
}

// settle makes the connection the session's.
func (s *session) settle(ctx context.Context, c connection, w wanted) (backend.Opened, error) {
	saved, told, err := s.tell(ctx, c, w)
	if err == nil {
		err = s.save(ctx, saved)
	}
	if err == nil {
		var before *link
		var open bool
		if before, open = s.adopt(c.link, saved, told); !open {
			err = errSessionClosed
		} else if before != nil {
			err = before.leave(ctx, s)
		}
	}
	if err != nil {
		if leaveErr := c.link.leave(context.WithoutCancel(ctx), s); leaveErr != nil {
			s.proxy.log.Warn("closing a session of the agent", "error", leaveErr)
		}
		return backend.Opened{}, err
	}
	s.relays.show(s)
	s.announced.isOutdated(s.host.Catalog())
	if err := s.announceFound(ctx, s.host); err != nil {
		s.proxy.log.Debug("the commands of the roots were not announced", "error", err)
	}
	opened := backend.Opened{Result: c.result}
	if c.shown > 0 {
		opened.Replay = backend.FromBackend
	}
	return opened, nil
}

// soFar is the conversation so far, in words. A session that cannot be opened without is not; one that is in use
// goes on, and the child is told when the record can be read.
func (s *session) soFar(w wanted) (string, error) {
	text, err := conversation(s.history, s.proxy.options.limits.maxContext, w.unsaid)
	if err != nil && w.unread {
		s.proxy.log.Warn("the agent that was started anew is not told what was said so far: the record cannot be read", "error", err)
		return "", nil
	}
	return text, err
}

// tell is what is to be saved of a connection, and what the child is to be told in words.
func (s *session) tell(ctx context.Context, c connection, w wanted) (saved state, told pending, err error) {
	if c.by != byNew {
		saved = w.state
	}
	saved.ID, saved.Way, saved.Offered = c.link.id, c.way, len(s.found(commandNames(s.announced.own()))) > 0
	if c.by == byNew && w.cause != backend.New || saved.Due {
		if told.soFar, err = s.soFar(w); err != nil {
			return state{}, pending{}, err
		}
		saved.Due = told.soFar != "" || w.unread
		saved.Partial = saved.Partial || saved.Due
	}
	tools := s.toolsFor(c.way)
	switch now := digest(s.roots, tools); {
	case c.way != RootsByContext:
		saved.Told = ""
	case saved.Told == now, saved.Told == "" && s.roots.Additional().Len() == 0:
	default:
		told.told = now
		told.roots = introduction(ctx, s.roots, s.host.Workspace(), tools)
	}
	return saved, told, nil
}

// reopen opens the child's session that was saved.
func (s *session) reopen(ctx context.Context, by step, a *agent, how RootsMode, w wanted) (c connection, err error) {
	params, err := s.request(by, how, w.state.ID)
	if err != nil {
		return c, err
	}
	l, err := s.enter(ctx, a, w)
	if err != nil {
		return c, err
	}
	shows := by == byLoad && w.shows()
	mode := ignoring
	if shows {
		mode = replaying
	}
	s.listen(mode)
	l.ask(s)
	heard := 0
	c = connection{link: l, by: by, way: how}
	c.result, err = a.ask(ctx, string(by), params, func(_ backend.Raw, err error) {
		if err == nil {
			heard = s.tune(ctx, by)
		}
	})()
	if err == nil {
		l.open(c.result)
		if shows {
			c.shown = heard
		}
		return c, nil
	}
	if so, _ := s.heard(passingOn); shows {
		c.shown = so
	}
	left, before := l.quit(s)
	switch {
	case refusal(err) != nil:
	case before != nil: // it may have been opened so all the same
		before.restore(ctx, l, s)
	case left == 0:
		if closeErr := a.closeSession(context.WithoutCancel(ctx), l.id); closeErr != nil {
			a.log.Warn("closing a session of the agent", "error", closeErr)
		}
	}
	return c, err
}

// restore has the child's session again as s has it: from, which came to nothing, may have asked for something else (A13).
// A child that does not answer in time is not waited for.
func (s *session) restore(ctx context.Context, l *link, from *session) {
	a, by := l.agent, byResume
	if a.hasEnded() || s.asksAs(from) {
		return
	}
	if !a.info.Resume {
		by = byLoad
		s.listen(lagging)
	}
	s.mu.Lock()
	how := s.saved.Way
	s.mu.Unlock()
	params, err := s.request(by, how, l.id)
	if err == nil {
		lasting := context.WithoutCancel(ctx)
		ctx, cancel := context.WithTimeoutCause(lasting, s.proxy.options.limits.endTimeout, errNoAnswer)
		defer cancel()
		_, err = a.ask(ctx, string(by), params, func(backend.Raw, error) { s.tune(lasting, by) })()
	}
	if err == nil {
		return
	}
	if !errors.Is(err, errNoAnswer) { // else it may come, behind the history, until the next turn
		s.listen(passingOn)
	}
	a.log.Warn("the agent may have other directories and MCP servers than the session: load it again", "error", err)
}

// enter makes the session a user of the link of the child's session that was saved. From then on what the child
// says of it comes here.
func (s *session) enter(ctx context.Context, a *agent, w wanted) (*link, error) {
	before := w.link()
	if before != nil && before.key != w.state.key() {
		before = nil
	}
	if before != nil && w.stop != nil {
		// The child cannot open what it is at work in, and the turn's updates could not be told from the replay.
		if err := w.stop(ctx); err != nil {
			return nil, err
		}
	}
	if before != nil && before.agent == a {
		before.join(s)
		before.own(s)
		a.holds.Add(-1) // the link has one
		return before, nil
	}
	l := newLink(a, w.state.ID)
	l.join(s)
	return l, l.attach()
}

// tune takes what the child said until it answered, on the read loop: what comes from here on is new.
func (s *session) tune(ctx context.Context, by step) (heard int) {
	next := passingOn
	if by == byLoad && s.proxy.profile.LateReplay {
		next = lagging
	}
	heard, states := s.heard(next)
	for _, state := range states {
		if err := s.show(ctx, s.host, state.update); err != nil {
			s.proxy.log.Debug("a state of the agent was not passed on", "kind", state.kind, "error", err)
		}
	}
	return heard
}

// request are the params of a lifecycle request to the child.
func (s *session) request(by step, how RootsMode, id backend.Raw) (backend.Raw, error) {
	params, err := fitted(how, backend.Cause(by), s.params, s.roots)
	if err == nil {
		params, err = s.relayed(params)
	}
	if err == nil {
		params, err = s.equipped(params, s.toolsFor(how))
	}
	if err != nil || by == byNew {
		return params, err
	}
	return strictjson.Put(params, "sessionId", id)
}

// create has the child make a session, its own or a copy of the one that was saved.
func (s *session) create(ctx context.Context, by step, a *agent, how RootsMode, w wanted) (connection, error) {
	params, err := s.request(by, how, w.state.ID)
	if err != nil {
		return connection{}, err
	}
	a.routes.begin()
	defer func() {
		for _, m := range a.routes.end() {
			a.refuse(m, errUnknownSession)
		}
	}()
	s.listen(passingOn)
	if by == byFork {
		s.listen(ignoring) // some replay the copy
	}
	made := &creation{session: s, agent: a, by: by}
	_, err = a.ask(ctx, string(by), params, func(result backend.Raw, err error) {
		if err == nil {
			made.answered(ctx, result)
		}
	})()
	if err != nil {
		if l := made.giveUp(); l != nil {
			// It was answered at that moment.
			l.quit(s)
			made.discard(l.id)
		}
		return connection{}, err
	}
	l, result, err := made.taken()
	return connection{link: l, by: by, way: how, result: result}, err
}

// creation is a session that the child was asked to make. It is there as soon as the answer is read; if nobody
// waits any more by then, it is closed again.
type creation struct {
	session *session
	agent   *agent
	by      step

	mu      sync.Mutex
	givenUp bool
	link    *link
	result  backend.Raw
	failure error
}

// answered takes the child's answer, on the read loop.
func (c *creation) answered(ctx context.Context, answer backend.Raw) {
	id, result, err := strictjson.Take(answer, "sessionId")
	if err != nil || sessionKey(id) == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failure = fmt.Errorf("the agent answered %s without a session id", c.by)
		return
	}
	l := newLink(c.agent, id)
	l.result = result
	l.join(c.session)
	c.mu.Lock()
	if c.givenUp {
		c.mu.Unlock()
		c.discard(id)
		return
	}
	c.link, c.result = l, result
	c.mu.Unlock()
	if err := l.attach(); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.link, c.failure = nil, err
		return
	}
	c.session.tune(ctx, c.by)
}

// discard ends a session that nobody wants any more. Its answers are not waited for.
func (c *creation) discard(id backend.Raw) {
	c.agent.log.Info("the agent made a session that nobody waits for any more: it is closed again")
	params := backend.Raw(`{"sessionId":` + string(id) + `}`)
	if c.agent.info.Close {
		_ = c.agent.call(context.Background(), "session/close", params)
	}
	if c.agent.info.Delete {
		_ = c.agent.call(context.Background(), "session/delete", params)
	}
}

// giveUp has what comes from here on discarded, and returns what has come.
func (c *creation) giveUp() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.givenUp = true
	return c.link
}

// taken is what was made.
func (c *creation) taken() (*link, backend.Raw, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.result, c.failure
}

// revive gives the session a session of the child's again after the child has ended: the child is started anew
// and opens it, or is told what was said in it so far. unsaid is the number of blocks of a prompt that is
// recorded and that the child is sent next.
func (s *session) revive(ctx context.Context, unsaid int) (*link, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	before, saved, closed := s.link, s.saved, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errSessionClosed
	case before.alive():
		return before, nil
	}
	if _, err := s.connect(ctx, wanted{cause: backend.Resume, state: saved, unsaid: unsaid, unread: true}); err != nil {
		return nil, err
	}
	l := s.living()
	if l == nil {
		return nil, errSessionClosed
	}
	s.proxy.log.Info("a session goes on with an agent that was started anew", "child", l.agent.process.Name())
	for _, c := range before.settings.choices() {
		if err := l.choose(ctx, c); err != nil {
			s.proxy.log.Warn("the agent that was started anew did not take a setting", "method", c.method, "error", err)
		}
	}
	return l, nil
}

// surmountable reports whether another way to a session is worth trying after the child refused one. Agents
// answer with many codes for a session that they do not know.
func surmountable(err error) bool {
	refused := refusal(err)
	return refused != nil && refused.Code != codeAuthRequired && refused.Code != jsonrpc.CodeCancelled
}

// explained adds to a child's refusal what a person can do about it.
func (p *proxy) explained(err error) error {
	refused := refusal(err)
	if refused == nil || refused.Code != codeAuthRequired || p.profile.Login == "" {
		return err
	}
	e := *refused
	e.Message += fmt.Sprintf(" (if your editor does not offer a way to log in, type in a terminal: %s)", p.profile.Login)
	return &e
}
