package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/violation"
	"github.com/acp-agent/acp-agent/workspace"
)

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
	if err := at.wait(ctx); err != nil {
		return nil, nil, err
	}
	stored, err := a.stored(ctx, p.id)
	if err != nil {
		return nil, nil, err
	}
	if err := a.init.serves(cause); err != nil {
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
		// What cannot be shown is not left half open.
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
	// From here on it is too late to give up.
	if err := in.endTurn(context.WithoutCancel(ctx), runtime.ErrCancelled); err != nil {
		a.log.Warn("ending a turn", "session", stored.ID, "error", err)
	}
	if before != nil {
		before.retire(a.base, l)
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
	ctx = context.WithoutCancel(ctx)
	if before == nil {
		return a.options.Store.Activate(ctx, stored.ID, change)
	}
	return before.takeOver(ctx, change)
}

// retire frees an activation that was replaced by the one with lease l, and makes up for the end of a turn
// that could not be stored.
func (s *session) retire(ctx context.Context, l sessionstore.Lease) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	err := s.close(ctx)
	if s.open {
		err = errors.Join(err, s.agent.options.Store.EndTurn(ctx, l, ""))
	}
	if err != nil {
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
