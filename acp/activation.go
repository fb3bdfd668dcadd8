package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/violation"
	"github.com/acp-agent/acp-agent/workspace"
)

// activation is a session on its way to being active: everything that can fail happens on it,
// and is undone by abandon. commit makes it a session.
type activation struct {
	agent     *agent
	id        sessionstore.ID
	workspace *workspace.Workspace
	host      *host
	runtime   runtime.Session
	opened    runtime.Opened
	title     string
}

// reserve counts a session against the limit.
func (a *agent) reserve() error {
	if n := a.active.Add(1); n > int64(a.options.MaxSessions) {
		a.active.Add(-1)
		return reasoned(wire.CodeInternal,
			"too many active sessions: the limit is "+strconv.Itoa(a.options.MaxSessions)+"; close one first",
			reasonData{Reason: "too_many_sessions"})
	}
	return nil
}

// open opens the roots and the runtime's side of an activation.
func (a *agent) open(ctx context.Context, id sessionstore.ID, p sessionParams, r runtime.Activation) (_ *activation, err error) {
	w, err := workspace.Open(ctx, p.roots, a.options.Workspace)
	if err != nil {
		return nil, err
	}
	act := &activation{agent: a, id: id, workspace: w}
	act.host = &host{agent: a, id: id, workspace: w, servers: p.servers, stop: r.Stop}
	defer func() {
		if err != nil {
			act.abandon()
		}
	}()
	for _, s := range p.servers {
		a.log.Info("MCP server accepted, not started", "session", id, "server", s.name, "transport", s.transport)
	}
	r.Params = p.rest
	act.runtime, act.opened, err = a.runtime.Open(ctx, r, act.host)
	if err != nil {
		act.runtime = nil
		return nil, err
	}
	if act.opened.Result, err = lifecycleResult(act.opened.Result); err != nil {
		return nil, err
	}
	return act, nil
}

// abandon undoes an activation that was not committed.
func (act *activation) abandon() {
	act.host.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(act.agent.base), commitTimeout)
	defer cancel()
	var err error
	if act.runtime != nil {
		err = act.runtime.Close(ctx)
	}
	if err = errors.Join(err, act.workspace.Close()); err != nil {
		act.agent.log.Warn("undoing an activation", "session", act.id, "error", err)
	}
}

// keys are the activation's root set by both keys, with cwd in the spelling that the session keeps: an
// additional root that is spelled so is dropped, as it would have been at session/new (A7, A17).
func (act *activation) keys(cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, act.workspace.Roots().Additional())}
	for _, root := range act.workspace.Opened() {
		if root.Index == 0 || root.Dir != cwd {
			k.Real = append(k.Real, root.Real)
		}
	}
	return k
}

// commit makes the activation the active session of its lane. It was stored under l.
func (act *activation) commit(in *lane, l sessionstore.Lease) *session {
	s := &session{
		id: act.id, agent: act.agent, lane: in, workspace: act.workspace,
		runtime: act.runtime, host: act.host, current: l, title: act.title,
	}
	s.record(act.agent.options.Recorder)
	act.host.commit(s)
	in.activate(s)
	return s
}

// acceptNew is the first half of session/new. The new session's lane is its own, so it waits for no other.
func (a *agent) acceptNew(ctx context.Context, r *wire.Request) wire.Work {
	p, err := a.decodeSession(r.Params, newFields)
	if err != nil {
		return failed(err)
	}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		return a.create(ctx, r, p, runtime.Activation{Cause: runtime.New}, func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			return a.options.Store.Create(ctx, n)
		})
	}
}

// acceptFork is the first half of session/fork. It does not wait for its source.
func (a *agent) acceptFork(ctx context.Context, r *wire.Request) wire.Work {
	p, err := a.decodeSession(r.Params, forkFields)
	if err != nil {
		return failed(err)
	}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		if err := a.serves(ctx, runtime.Fork); err != nil {
			return nil, err
		}
		source, err := a.stored(ctx, p.id)
		if err != nil {
			return nil, err
		}
		act := runtime.Activation{Cause: runtime.Fork, State: source.State, History: a.options.Store.History(ctx, p.id)}
		return a.create(ctx, r, p, act, func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			n.Title = source.Title
			if n.State == nil {
				n.State = source.State
			}
			return a.options.Store.Fork(ctx, p.id, n)
		})
	}
}

// create opens a session of a new id and stores it.
func (a *agent) create(ctx context.Context, r *wire.Request, p sessionParams, ra runtime.Activation,
	store func(context.Context, sessionstore.NewSession) (sessionstore.Lease, error)) (json.RawMessage, error) {
	if err := a.initialized(ctx); err != nil {
		return nil, err
	}
	if err := a.reserve(); err != nil {
		return nil, err
	}
	act, err := a.open(ctx, newID(), p, ra)
	if err != nil {
		a.active.Add(-1)
		return nil, asWire(err)
	}
	l, err := store(ctx, sessionstore.NewSession{ID: act.id, Agent: a.init.owner(), Keys: act.keys(p.roots.Cwd()), State: act.host.state})
	if err != nil {
		act.abandon()
		a.active.Add(-1)
		return nil, asWire(err)
	}
	at := a.lanes.enter(act.id, entryLifecycle)
	s := act.commit(at.lane, l)
	a.settle(r, at, s)
	return put(act.opened.Result, "sessionId", quote(string(act.id))), nil
}

// settle has the rest of an activation done once its response is on the wire: what the runtime
// said meanwhile is sent, then the lane goes on.
func (a *agent) settle(r *wire.Request, at *place, s *session) {
	r.AfterResponse(func() {
		s.host.release(a.base)
		at.leave()
		a.lanes.forget(at.lane)
	})
}

// acceptReopen is the first half of session/load and session/resume.
func (a *agent) acceptReopen(ctx context.Context, r *wire.Request, cause runtime.Cause) wire.Work {
	fields := resumeFields
	if cause == runtime.Load {
		fields = loadFields
	}
	p, err := a.decodeSession(r.Params, fields)
	if err != nil {
		return failed(err)
	}
	at := a.lanes.enter(p.id, entryLifecycle)
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		s, result, err := a.reopen(ctx, at, p, cause)
		if err != nil {
			at.leave()
			a.lanes.forget(at.lane)
			return nil, asWire(err)
		}
		a.settle(r, at, s)
		return result, nil
	}
}

// reopen activates a stored session. Whatever can fail comes first; then the running turn of the live
// session ends, the new activation takes its place, and a load replays the history (A12).
func (a *agent) reopen(ctx context.Context, at *place, p sessionParams, cause runtime.Cause) (*session, json.RawMessage, error) {
	if err := a.serves(ctx, cause); err != nil {
		return nil, nil, err
	}
	if err := at.wait(ctx); err != nil {
		return nil, nil, err
	}
	stored, err := a.stored(ctx, p.id)
	if err != nil {
		return nil, nil, err
	}
	if err := matchCwd(p.roots.Cwd(), stored.Keys); err != nil {
		return nil, nil, err
	}
	before := at.lane.active()
	if before == nil {
		if err := a.reserve(); err != nil {
			return nil, nil, err
		}
	}
	s, act, err := a.replace(ctx, at.lane, before, stored, p, cause)
	if err != nil {
		if before == nil {
			a.active.Add(-1)
		}
		return nil, nil, err
	}
	if cause == runtime.Load {
		// It is too late to give up: the roots are the new ones. What cannot be shown is not left half open.
		if err := a.replay(context.WithoutCancel(ctx), s, act.opened); err != nil {
			a.closeSession(a.base, s)
			return nil, nil, err
		}
	}
	return s, act.opened.Result, nil
}

// replace opens a new activation of a stored session and puts it in the place of before.
func (a *agent) replace(ctx context.Context, in *lane, before *session, stored sessionstore.Session, p sessionParams, cause runtime.Cause) (*session, *activation, error) {
	stop := sync.OnceValue(func() error { return in.endTurn(ctx, runtime.ErrCancelled) })
	ra := runtime.Activation{
		Cause: cause, State: stored.State, History: a.options.Store.History(ctx, stored.ID),
		Stop: func(context.Context) error { return stop() },
	}
	if before != nil {
		ra.Previous = before.runtime
	}
	act, err := a.open(ctx, stored.ID, p, ra)
	if err != nil {
		return nil, nil, err
	}
	act.title = stored.Title
	l, err := a.takeOver(ctx, before, act, stored, cause)
	if err != nil {
		act.abandon()
		return nil, nil, err
	}
	if err := stop(); err != nil {
		a.log.Warn("ending a turn", "session", stored.ID, "error", err)
	}
	if before != nil {
		before.retire(a.base)
	}
	return act.commit(in, l), act, nil
}

// takeOver gives the session its new roots and a new generation. The turn that runs in before goes on
// with the new generation, unless it was fenced.
func (a *agent) takeOver(ctx context.Context, before *session, act *activation, stored sessionstore.Session, cause runtime.Cause) (sessionstore.Lease, error) {
	change := sessionstore.Activation{Keys: act.keys(stored.Keys.Roots.Cwd()), State: act.host.state}
	if cause == runtime.Load && act.opened.Replay == runtime.ByRuntime {
		change.History = append([]sessionstore.Update{}, act.host.replayed...)
	}
	activate := func() (sessionstore.Lease, error) {
		return a.options.Store.Activate(context.WithoutCancel(ctx), stored.ID, change)
	}
	if before == nil {
		return activate()
	}
	return before.takeOver(context.WithoutCancel(ctx), activate)
}

// retire frees an activation that was replaced.
func (s *session) retire(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := s.close(ctx); err != nil {
		s.agent.log.Warn("closing an activation", "session", s.id, "error", err)
	}
}

// stored returns a stored session that this agent may open.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.options.Store.Get(ctx, id)
	if err != nil {
		return s, asWire(err)
	}
	if s.Agent != a.init.owner() {
		return s, violation.Refuse(violation.New("sessionId", string(id), violation.OtherAgent).Expecting(commandOf(s.Agent)))
	}
	return s, nil
}

// commandOf is a command line that reaches the agent of a session.
func commandOf(owner sessionstore.Agent) string {
	if owner.Kind == "proxy" {
		return "acp-agent -- " + owner.Profile
	}
	return "acp-agent"
}

// matchCwd holds a load's cwd against the session's (A11, A17).
func matchCwd(cwd workspace.Dir, stored sessionstore.Keys) error {
	if cwd == stored.Roots.Cwd() || (len(stored.Real) > 0 && workspace.Real(cwd) == stored.Real[0]) {
		return nil
	}
	return violation.Refuse(violation.New("cwd", cwd.String(), violation.CwdMismatch).Expecting(stored.Roots.Cwd().String()))
}

// acceptEnd is the first half of session/close and session/delete.
func (a *agent) acceptEnd(ctx context.Context, r *wire.Request, end func(context.Context, *place) error) wire.Work {
	id, err := decodeSessionID(r.Params)
	if err != nil {
		return failed(err)
	}
	at := a.lanes.enter(id, entryLifecycle)
	r.AfterResponse(func() {
		at.leave()
		a.lanes.forget(at.lane)
	})
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		if err := at.wait(ctx); err != nil {
			return nil, err
		}
		return nil, asWire(end(ctx, at))
	}
}

// close ends a session's turn and frees it; what is stored stays (A28).
func (a *agent) close(ctx context.Context, at *place) error {
	s := at.lane.active()
	if s == nil {
		return nil
	}
	if err := at.lane.endTurn(ctx, runtime.ErrCancelled); err != nil {
		return err
	}
	a.closeSession(context.WithoutCancel(ctx), s)
	return nil
}

// delete removes a session for good, closing it first (A28). One that is gone from the store may be active here.
func (a *agent) delete(ctx context.Context, at *place) error {
	if _, err := a.stored(ctx, at.lane.id); err != nil {
		var unknown *wire.Error
		if errors.As(err, &unknown) && unknown.Code == codeNotFound {
			return a.close(ctx, at)
		}
		return err
	}
	if err := a.close(ctx, at); err != nil {
		return err
	}
	return a.options.Store.Delete(ctx, at.lane.id)
}
