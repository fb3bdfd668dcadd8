package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// opening describes the session to open.
type opening struct {
	id         sessionstore.ID // for the client
	stored     sessionstore.ID // see host
	params     sessionParams
	activation backend.Activation // without Params
	foreign    bool               // the store does not have it, or its source
	previous   *session           // the active session that a load or resume replaces, or nil
	rate       *replayRate        // of a load
	viewers    *viewers
	loading    *connection // of the client that loads
}

// activation is an opened session that is not active yet. Either activate makes it a session, or
// abandon undoes it.
type activation struct {
	agent     *agent
	id        sessionstore.ID
	counted   bool // against the limit of active sessions
	params    sessionParams
	workspace *workspace.Workspace
	broad     []string // by root, from broadDir
	servers   serverChange
	host      *host
	backend   backend.Session
	opened    backend.Opened
}

// open opens a session: its roots, its MCP servers, the catalog of what its roots hold, and the
// backend's side of it. If it fails, it closes whatever it has opened.
func (a *agent) open(ctx context.Context, o opening) (*activation, error) {
	act := &activation{agent: a, id: o.id}
	if o.previous == nil {
		if err := a.takeSession(); err != nil {
			return nil, err
		}
		act.counted = true
	}
	if err := a.tasks.OnDiskOrUndo(ctx, func() error {
		return act.openRoots(ctx, o)
	}, act.abandon); err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok { // also after a panic
			act.abandon()
		}
	}()
	params := o.activation
	params.Params, params.History = act.params.rest, act.host.history(params.History)
	var err error
	act.backend, act.opened, err = a.backend.Open(ctx, params, act.host)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); told && !o.foreign {
			return nil, err // it is listed, so it matters why it cannot be opened
		}
		return nil, errUnknownSession(o.params.id)
	}
	if err != nil {
		return nil, err
	}
	if a.home.queues.IsClosed() {
		return nil, backend.ErrClosed // the connection has ended: store nothing
	}
	if act.opened.Result, err = lifecycleResult(act.opened.Result); err != nil {
		return nil, err
	}
	ok = true
	return act, nil
}

// takeSession counts a session that is active or being opened, until releaseSession.
func (a *agent) takeSession() error {
	if err := a.owner.take(sessionSlot); err != nil {
		return err
	}
	a.owner.use(a)
	return nil
}

// releaseSession undoes takeSession.
func (a *agent) releaseSession() {
	a.owner.release(sessionSlot)
	a.owner.unuse(a)
}

// openRoots does the part of opening that reads disks: it opens the roots and scans them.
func (act *activation) openRoots(ctx context.Context, o opening) (err error) {
	a := act.agent
	act.params = o.params
	act.workspace, err = act.params.openRoots(ctx, a.options.Workspace)
	if err != nil {
		return err
	}
	for _, root := range act.workspace.Opened() {
		act.broad = append(act.broad, broadDir(root.Real, a.homeDir()))
	}
	act.host = newHost(a, act.id, o.stored, act.workspace, o.viewers)
	act.host.stop, act.host.rate, act.host.foreign = o.activation.Stop, o.rate, o.foreign
	act.host.loading = o.loading
	act.host.permits = newPermits(a, act.id, act.workspace, o.previous)
	act.host.workspace = act.host.permits.Guard(act.workspace)
	act.host.isNew = o.activation.Cause == backend.New
	if err := act.params.checkShown(act.workspace); err != nil {
		return err
	}
	if act.servers,
		err = a.changeServers(act.id, act.workspace, o.previous, o.params.servers); err != nil {
		return err
	}
	act.host.servers = &sessionServers{set: act.servers.set,
		ours: a.info().MCP == backend.AdapterConnects, given: act.servers.configs}
	return act.host.scan(ctx)
}

// store stores the activation with do, and abandons it if that fails or panics.
func (act *activation) store(
	do func() (sessionstore.Lease, error),
) (lease sessionstore.Lease, err error) {
	err = act.agent.tasks.Guard("session store", func() (err error) {
		lease, err = do()
		return err
	})
	if err != nil {
		act.abandon()
	}
	return lease, err
}

// abandon undoes what has been opened so far.
func (act *activation) abandon() {
	a := act.agent
	if act.counted {
		a.releaseSession()
	}
	if act.workspace == nil {
		return
	}
	act.host.close()
	ctx, cancel := commitContext(a.base)
	defer cancel()
	var err error
	if act.backend != nil {
		err = a.tasks.Guard("close", func() error { return act.backend.Close(ctx) })
	}
	err = errors.Join(err, act.servers.abandon(ctx), act.host.dropReplayed(ctx),
		act.workspace.Close())
	if err != nil {
		a.log.Warn("cannot close a session that failed to open", "session", act.id, "error", err)
	}
}

// activate makes the activation, which was stored under lease, the active session of q. It fails if
// the connection has ended: what was stored stays, and what was opened is closed.
func (act *activation) activate(
	q *queue, lease sessionstore.Lease, title string,
) (*session, error) {
	act.servers.apply(act.host, act.backend)
	s := newSession(act, q, lease, title)
	if !act.agent.home.queues.Activate(q, s) {
		s.retire(act.agent.base)
		if act.counted {
			act.agent.releaseSession()
		}
		return nil, backend.ErrClosed
	}
	act.host.attach(s)
	act.agent.observeOpened(s)
	act.host.announceCommands()
	return s, nil
}

// keys returns the activation's roots as the store's two keys, with cwd spelled as the session
// keeps it. It drops an additional root that has the same spelling as cwd, as session/new does.
func (act *activation) keys(cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, act.workspace.Roots().Additional())}
	for _, root := range act.workspace.Opened() {
		if root.Index == 0 || root.Dir != cwd {
			k.Real = append(k.Real, root.Recorded())
		}
	}
	return k
}

// movedRoots returns a message to the user about roots that lead elsewhere than when the session
// was last opened, or "".
func (act *activation) movedRoots(stored sessionstore.Keys) string {
	return act.agent.sessions.MovedRoots(act.id, stored, act.workspace.Opened())
}

// lifecycleResult checks a backend's part of a lifecycle response and removes its session id.
func lifecycleResult(result backend.Raw) (json.RawMessage, error) {
	if len(result) == 0 {
		return json.RawMessage(`{}`), nil
	}
	_, rest, err := strictjson.Take(result, protocol.SessionID)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent's response is not an object")
	}
	return rest, nil
}
