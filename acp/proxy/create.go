package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// reopen opens the child's session that was saved.
func (s *session) reopen(ctx context.Context, by step, a *agent, how profile.Way, w wanted) (c connection, err error) {
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
	c.result, err = a.ask(ctx, jsonrpc.Question{Method: string(by), Params: params, Answered: func(_ backend.Raw, err error) {
		if err == nil {
			heard = s.tune(ctx, by)
		}
	}})()
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
		ctx, cancel := context.WithTimeoutCause(lasting, s.proxy.options.EndTimeout, errNoAnswer)
		defer cancel()
		_, err = a.ask(ctx, jsonrpc.Question{Method: string(by), Params: params, Answered: func(backend.Raw, error) { s.tune(lasting, by) }})()
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
func (s *session) request(by step, how profile.Way, id backend.Raw) (backend.Raw, error) {
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
func (s *session) create(ctx context.Context, by step, a *agent, how profile.Way, w wanted) (connection, error) {
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
	_, err = a.ask(ctx, jsonrpc.Question{Method: string(by), Params: params, Answered: func(result backend.Raw, err error) {
		if err == nil {
			made.answered(ctx, result)
		}
	}})()
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
