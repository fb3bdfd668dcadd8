package acp

import (
	"context"
	"errors"
	"strconv"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// activation is a session on its way to being active: everything that can fail happens on it,
// and is undone by abandon. commit makes it a session.
type activation struct {
	agent     *agent
	id        sessionstore.ID
	workspace *workspace.Workspace
	servers   bridge
	host      *host
	runtime   backend.Session
	opened    backend.Opened
	title     string
}

// reserve counts a session against the limit.
func (a *agent) reserve() error {
	if n := a.active.Add(1); n > int64(a.options.tuning.MaxSessions) {
		a.active.Add(-1)
		return reasoned(jsonrpc.CodeInternal,
			"too many active sessions: the limit is "+strconv.Itoa(a.options.tuning.MaxSessions)+"; close one first",
			reasonData{Reason: "too_many_sessions"})
	}
	return nil
}

// counted runs open, which makes a session active, and counts the session against the limit unless open fails.
func (a *agent) counted(open func() error) error {
	if err := a.reserve(); err != nil {
		return err
	}
	active := false
	defer func() {
		if !active { // also after a panic
			a.active.Add(-1)
		}
	}()
	err := open()
	active = err == nil
	return err
}

// prepare opens the roots of an activation, and looks at what is in them.
func (a *agent) prepare(ctx context.Context, id sessionstore.ID, p sessionParams, before *session) (*activation, error) {
	w, err := workspace.Open(ctx, p.roots, a.options.Workspace)
	if err != nil {
		return nil, err
	}
	act := &activation{agent: a, id: id, workspace: w, host: newHost(a, id, w)}
	prepared := false
	defer func() {
		if !prepared { // also after a panic
			act.abandon()
		}
	}()
	if act.servers, err = a.bridgeTo(id, w, before, p.servers); err != nil {
		return nil, err
	}
	act.host.servers = &serving{set: act.servers.set, given: act.servers.configs}
	if err = act.host.scan(ctx); err != nil {
		return nil, err
	}
	prepared = true
	return act, nil
}

// open opens the roots and the runtime's side of an activation. What the runtime replays, if it may, keeps the pace.
func (a *agent) open(ctx context.Context, id sessionstore.ID, p sessionParams, before *session, r backend.Activation, replays *pace) (*activation, error) {
	act, err := onDisk(ctx, a, func() (*activation, error) { return a.prepare(ctx, id, p, before) }, (*activation).abandon)
	if err != nil {
		return nil, err
	}
	act.host.stop, act.host.pace = r.Stop, replays
	r.History = act.host.history(r.History)
	opened := false
	defer func() {
		if !opened { // also after a panic
			act.abandon()
		}
	}()
	r.Params = p.rest
	opening, with, err := a.runtime.Open(ctx, r, act.host)
	if err != nil {
		return nil, err
	}
	act.runtime, act.opened = opening, with
	if a.lanes.over() {
		return nil, backend.ErrClosed // nothing is committed for a connection that has ended
	}
	if act.opened.Result, err = lifecycleResult(act.opened.Result); err != nil {
		return nil, err
	}
	opened = true
	return act, nil
}

// abandon undoes an activation that was not committed.
func (act *activation) abandon() {
	act.host.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(act.agent.base), commitTimeout)
	defer cancel()
	var err error
	if act.runtime != nil {
		err = act.agent.guard("close", func() error { return act.runtime.Close(ctx) })
	}
	err = errors.Join(err, act.servers.abandon(ctx))
	if err = errors.Join(err, act.host.dropReplayed(ctx), act.workspace.Close()); err != nil {
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

// commit makes the activation the active session of its lane. It was stored under l. Once the connection has
// ended it is too late: what was stored stays, and what was opened is freed.
func (act *activation) commit(in *lane, l sessionstore.Lease) (*session, error) {
	s := newSession(act, in, l)
	if !act.agent.lanes.activate(s) {
		s.retire(act.agent.base)
		return nil, backend.ErrClosed
	}
	act.host.commit(s)
	return s, nil
}
