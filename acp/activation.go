package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// openOptions describe the session to open.
type openOptions struct {
	id         sessionstore.ID // for the client
	stored     sessionstore.ID // see session
	params     sessionParams
	activation backend.Activation // without Params
	foreign    bool               // the store does not have it, or its source
	previous   *session           // the active session that a load or resume replaces, or nil
	pace       pace               // of a load
	viewers    *viewers
	loading    *connection // of the client that loads
}

// open opens a session: its roots, its MCP servers, the catalog of what its roots hold, and the
// backend's side of it. If it fails, it closes whatever it has opened.
//
// Either activate makes the session active, or abandon undoes what open has done.
func (a *agent) open(ctx context.Context, o openOptions) (*session, error) {
	s := &session{agent: a, stored: o.stored, address: newAddress(o.id), params: o.params,
		viewers: o.viewers, gate: gate.New(), replay: newReplay(a, o),
		scanning: make(chan struct{}, 1), outside: make(chan struct{}, 1)}
	s.spending = s.newSpending()
	if o.previous == nil {
		if err := a.owner.take(sessionSlot, a); err != nil {
			return nil, err
		}
		s.counted = true
	}
	if err := a.tasks.OnDiskOrUndo(ctx, func() error {
		return s.openRoots(ctx, o)
	}, s.abandon); err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok { // also after a panic
			s.abandon()
		}
	}()
	params := o.activation
	params.Params, params.History = s.params.rest, s.history(params.History)
	var err error
	s.backend, s.opened, err = a.backend.Open(ctx, params, s)
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
	if s.opened.Result, err = lifecycleResult(s.opened.Result); err != nil {
		return nil, err
	}
	ok = true
	return s, nil
}

// openRoots does the part of opening that reads disks: it opens the roots and scans them.
func (s *session) openRoots(ctx context.Context, o openOptions) (err error) {
	a := s.agent
	s.workspace, err = s.params.openRoots(ctx, a.options.Workspace)
	if err != nil {
		return err
	}
	s.permits = newPermits(a, s.id, s.workspace, o.previous)
	s.guarded = s.permits.Guard(s.workspace)
	if err := s.params.checkShown(s.workspace); err != nil {
		return err
	}
	if s.servers, err = s.openServers(o.previous); err != nil {
		return err
	}
	s.catalog, err = discovery.Scan(ctx, s.guarded)
	return err
}

// store stores the session with do, and abandons it if that fails or panics.
func (s *session) store(
	do func() (sessionstore.Lease, error),
) (lease sessionstore.Lease, err error) {
	err = s.agent.tasks.Guard("session store", func() (err error) {
		lease, err = do()
		return err
	})
	if err != nil {
		s.abandon()
	}
	return lease, err
}

// abandon undoes what has been opened so far.
func (s *session) abandon() {
	a := s.agent
	if s.counted {
		a.owner.release(sessionSlot, a)
	}
	if s.workspace == nil {
		return
	}
	s.gate.Advance(gate.Closed)
	ctx, cancel := tasks.Commit(a.base)
	defer cancel()
	var err error
	if s.backend != nil {
		err = a.tasks.Guard("close", func() error { return s.backend.Close(ctx) })
	}
	err = errors.Join(err, s.closeServers(ctx), s.dropReplayed(ctx), s.workspace.Close())
	if err != nil {
		a.log.Warn("cannot close a session that failed to open", "session", s.id, "error", err)
	}
}

// activate makes the session, which was stored under lease, the active one of q. If the connection
// has ended, it fails and closes the session, which remains stored.
func (s *session) activate(q *queue, lease sessionstore.Lease, title string) error {
	a := s.agent
	s.queue, s.lease = q, lease
	s.commitServers()
	s.ownServers(true)
	for _, u := range statesIn(s.opened.Result) {
		s.noteMode(u)
	}
	s.titled.Store(title != "")
	s.record = s.newRecord()
	if !a.home.queues.Activate(q, s) {
		s.retire(a.base)
		if s.counted {
			a.owner.release(sessionSlot, a)
		}
		return backend.ErrClosed
	}
	s.attach()
	a.observeOpened(s)
	s.announceCommands()
	return nil
}

// keys returns the session's roots as the store's two keys, with cwd spelled as the session
// keeps it. It drops an additional root that has the same spelling as cwd, as session/new does.
func (s *session) keys(cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: s.workspace.Roots()}
	for _, root := range s.workspace.Opened() {
		k.Real = append(k.Real, root.Recorded())
	}
	return k.WithCwd(cwd)
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
