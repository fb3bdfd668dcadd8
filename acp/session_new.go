package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// new serves session/new.
func (c *connection) new(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	p, err := c.decodeSession(ctx, parseParams(r.Params, newShape), absent, required)
	if err != nil {
		return nil, err
	}
	if err := c.agent.chooseFolders(ctx, &p, backend.New, nil); err != nil {
		return nil, err
	}
	return c.create(ctx, r, p, backend.New, listing.Openable{})
}

// create opens a session, stores it and returns the response. source is the session that it is a
// fork of, the zero value for a new one.
func (c *connection) create(
	ctx context.Context, r *jsonrpc.Request, p sessionParams, cause backend.Cause,
	source listing.Openable,
) (json.RawMessage, error) {
	a, id := c.agent, sessionstore.NewID()
	o := openOptions{id: id, stored: id, params: p,
		foreign: source.Unstored, viewers: newViewers(a, c, id),
		activation: backend.Activation{Cause: cause, State: source.State,
			MustExist: a.sessions.OnlyBackendKnows(ctx, source)}}
	if cause == backend.Fork && !source.Unstored {
		o.activation.History = sessionstore.WithoutEnds(a.options.Store.Finished(ctx, source.ID))
	}
	s, err := a.open(ctx, o)
	if err != nil {
		return nil, err
	}
	lease, err := s.store(func() (sessionstore.Lease, error) {
		return a.storeNew(ctx, s, cause, source)
	})
	if err != nil {
		return nil, err
	}
	at := a.home.queues.Ticket(s.id, turns.Lifecycle, c)
	if err := s.activate(at.Queue, lease, source.Title); err != nil {
		at.Release()
		return nil, err
	}
	s.notice = s.opened.Notice + s.droppedFolders(cause, source.Keys) +
		s.broadRoots(workspace.Roots{})
	c.releaseAfterResponse(r, at, s, a.sessions.MovedRoots(s.id, source.Keys, s.workspace.Opened()))
	return strictjson.Set(s.opened.Result, protocol.SessionID, quote(string(s.id))), nil
}

// storeNew stores a session that was opened, with the finished turns of source if it is a fork.
func (a *agent) storeNew(
	ctx context.Context, s *session, cause backend.Cause, source listing.Openable,
) (sessionstore.Lease, error) {
	state := s.gate.TakeState()
	n := sessionstore.Session{
		ID: s.id, Agent: a.identity(), Keys: s.keys(s.params.roots.Cwd()), State: state,
		StateKey: a.sessions.StateKey(state), Title: source.Title,
	}
	switch {
	case cause == backend.New:
		return a.options.Store.Create(ctx, n)
	case source.Unstored:
		return a.sessions.Adopt(ctx, n, sessionstore.Activation{Keys: n.Keys})
	case n.State == nil:
		n.State = source.State
	}
	return a.options.Store.Fork(ctx, source.ID, n)
}

// releaseAfterResponse lets the session go ahead once the response to r is on the wire: the notice
// is shown but not recorded, the updates buffered so far are sent, then the queue moves on.
func (c *connection) releaseAfterResponse(
	r *jsonrpc.Request, at *ticket, s *session, notice string,
) {
	a := s.agent
	r.AfterResponse(func() {
		if notice != "" {
			s.viewers.try(a.base, nil, backend.Warning(backend.Text(notice)))
		}
		s.release(a.base)
		at.Release()
		if c.HasLeft() { // while it was opening s
			s.viewers.Leave(c)
		}
		s.keep(s.viewers.Alone(), c.graceNow())
	})
}
