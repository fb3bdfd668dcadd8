package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptReopen is the first half of session/load and session/resume.
func (a *agent) acceptReopen(ctx context.Context, r *jsonrpc.Request, cause backend.Cause) jsonrpc.Work {
	id, _, err := takeSession(r.Params)
	if err != nil {
		return failed(err)
	}
	o := &reopening{agent: a, at: a.lanes.enter(id, entryLifecycle), cause: cause, pace: a.options.newPace(ctx)}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		settled := false
		defer func() {
			if !settled { // also after a panic
				o.at.leave()
			}
		}()
		s, result, err := o.run(ctx, r.Params)
		if err != nil {
			return nil, asWire(err)
		}
		a.settle(r, o.at, s)
		settled = true
		return result, nil
	}
}

// reopening is a session/load or session/resume on its way.
type reopening struct {
	agent  *agent
	at     *place
	cause  backend.Cause
	pace   *pace
	params sessionParams

	stored sessionstore.Session
	before *session // the live session, nil if there is none
}

// run activates a stored session. Whatever can fail comes first; then the running turn of the live
// session ends, the new activation takes its place, and a load replays the history (A12).
func (o *reopening) run(ctx context.Context, params json.RawMessage) (*session, json.RawMessage, error) {
	fields, a := resumeFields, o.agent
	if o.cause == backend.Load {
		fields = loadFields
	}
	var err error
	if o.params, err = a.decodeSession(ctx, params, fields); err != nil {
		return nil, nil, err
	}
	if err := o.at.wait(ctx); err != nil {
		return nil, nil, err
	}
	if err := o.find(ctx); err != nil {
		return nil, nil, err
	}
	var (
		s   *session
		act *activation
	)
	replace := func() (err error) {
		s, act, err = o.replace(ctx)
		return err
	}
	if o.before == nil {
		err = a.counted(replace)
	} else {
		err = replace()
	}
	if err != nil {
		return nil, nil, err
	}
	if o.cause == backend.Load {
		// What cannot be shown is not left half open.
		if err := a.replay(context.WithoutCancel(ctx), s, act.opened, o.pace); err != nil {
			a.closeSession(a.base, s)
			return nil, nil, err
		}
	}
	return s, act.opened.Result, nil
}

// find looks up the session, and refuses one that may not be opened so.
func (o *reopening) find(ctx context.Context) (err error) {
	if o.stored, err = o.agent.stored(ctx, o.params.id); err != nil {
		return err
	}
	o.before = o.at.lane.active()
	return o.agent.matchCwd(ctx, o.params.roots.Cwd(), o.stored.Keys)
}

// replace opens a new activation of the session and puts it in the place of the live one.
func (o *reopening) replace(ctx context.Context) (*session, *activation, error) {
	a, in := o.agent, o.at.lane
	stop := sync.OnceValue(func() error { return in.endTurn(ctx, backend.ErrCancelled) })
	ra := backend.Activation{
		Cause: o.cause, State: o.stored.State, History: a.options.Store.History(ctx, o.stored.ID),
		Stop: func(context.Context) error { return stop() },
	}
	if o.before != nil {
		ra.Previous = o.before.runtime
	}
	var replays *pace
	if o.cause == backend.Load {
		replays = o.pace
	}
	act, err := a.open(ctx, o.stored.ID, o.params, o.before, ra, replays)
	if err != nil {
		return nil, nil, err
	}
	act.title = o.stored.Title
	l, err := o.takeOver(ctx, act)
	if err != nil {
		act.abandon()
		return nil, nil, err
	}
	// From here on it is too late to give up.
	if err := in.endTurn(context.WithoutCancel(ctx), backend.ErrCancelled); err != nil {
		a.log.Warn("ending a turn", "session", o.stored.ID, "error", err)
	}
	if o.before != nil {
		o.before.servers.pass()
	}
	act.servers.commit(act.host)
	if o.before != nil {
		o.before.makeUp(a.base, l)
		o.before.retire(a.base)
	}
	if err := act.host.dropReplayed(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("dropping a replay", "session", o.stored.ID, "error", err)
	}
	s, err := act.commit(in, l)
	return s, act, err
}

// takeOver gives the session its new roots and a new generation. The turn that runs in the live one goes on
// with the new generation, unless it was fenced.
func (o *reopening) takeOver(ctx context.Context, act *activation) (sessionstore.Lease, error) {
	state := act.host.takeState()
	change := sessionstore.Activation{Keys: act.keys(o.stored.Keys.Roots.Cwd()), State: state, StateKey: o.agent.keyOf(state)}
	ctx = context.WithoutCancel(ctx)
	if o.cause == backend.Load && act.opened.Replay == backend.FromBackend {
		var err error
		if change.History, err = act.host.takeReplayed(ctx); err != nil {
			return sessionstore.Lease{}, err
		}
	}
	if o.before == nil {
		return o.agent.options.Store.Activate(ctx, o.stored.ID, change)
	}
	return o.before.takeOver(ctx, change)
}

// retire frees an activation that is not the active one of its lane any more.
func (s *session) retire(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := s.close(ctx); err != nil {
		s.agent.log.Warn("closing an activation", "session", s.id, "error", err)
	}
}

// makeUp records the end of a turn that could not be stored when it was over, with the lease of s's successor.
func (s *session) makeUp(ctx context.Context, l sessionstore.Lease) {
	if !s.open {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := s.agent.options.Store.EndTurn(ctx, l, ""); err != nil {
		s.agent.log.Warn("ending a turn", "session", s.id, "error", err)
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
		return s, strictjson.Refuse(strictjson.NewViolation("sessionId", string(id), strictjson.OtherAgent).Expecting(commandOf(s.Agent)))
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
func (a *agent) matchCwd(ctx context.Context, cwd workspace.Dir, stored sessionstore.Keys) error {
	if cwd == stored.Roots.Cwd() {
		return nil
	}
	real, err := onDisk(ctx, a, func() (workspace.Dir, error) { return workspace.Real(cwd), nil }, nil)
	if err != nil {
		return err
	}
	if len(stored.Real) > 0 && real == stored.Real[0] {
		return nil
	}
	return strictjson.Refuse(strictjson.NewViolation("cwd", cwd.String(), strictjson.CwdMismatch).Expecting(stored.Roots.Cwd().String()))
}
