package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// acceptNew is the first half of session/new. The new session's lane is its own, so it waits for no other.
func (a *agent) acceptNew(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		p, err := a.decodeSession(ctx, r.Params, newFields)
		if err != nil {
			return nil, err
		}
		return a.create(ctx, r, p, backend.Activation{Cause: backend.New}, "", func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			return a.options.Store.Create(ctx, n)
		})
	}
}

// acceptFork is the first half of session/fork. It does not wait for its source.
func (a *agent) acceptFork(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		p, err := a.decodeSession(ctx, r.Params, forkFields)
		if err != nil {
			return nil, err
		}
		source, err := a.stored(ctx, p.id)
		if err != nil {
			return nil, err
		}
		act := backend.Activation{Cause: backend.Fork, State: source.State, History: a.options.Store.Finished(ctx, p.id)}
		return a.create(ctx, r, p, act, source.Title, func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			if n.State == nil {
				n.State = source.State
			}
			return a.options.Store.Fork(ctx, p.id, n)
		})
	}
}

// storing stores a session that was opened, and returns the right to write to it.
type storing func(context.Context, sessionstore.NewSession) (sessionstore.Lease, error)

// create opens a session of a new id and stores it.
func (a *agent) create(ctx context.Context, r *jsonrpc.Request, p sessionParams, ra backend.Activation, title string, store storing) (result json.RawMessage, err error) {
	err = a.counted(func() (err error) {
		result, err = a.createCounted(ctx, r, p, ra, title, store)
		return err
	})
	return result, asWire(err)
}

// createCounted is create for a session that was counted against the limit.
func (a *agent) createCounted(ctx context.Context, r *jsonrpc.Request, p sessionParams, ra backend.Activation, title string, store storing) (json.RawMessage, error) {
	act, err := a.open(ctx, newID(), p, nil, ra, nil)
	if err != nil {
		return nil, err
	}
	act.title = title
	state := act.host.takeState()
	l, err := store(ctx, sessionstore.NewSession{
		ID: act.id, Agent: a.init.owner(), Keys: act.keys(p.roots.Cwd()), State: state, StateKey: a.keyOf(state), Title: title,
	})
	if err != nil {
		act.abandon()
		return nil, err
	}
	act.servers.commit(act.host)
	at := a.lanes.enter(act.id, entryLifecycle)
	s, err := act.commit(at.lane, l)
	if err != nil {
		at.leave()
		return nil, err
	}
	a.settle(r, at, s)
	return put(act.opened.Result, "sessionId", quote(string(act.id))), nil
}

// settle has the rest of an activation done once its response is on the wire: what the runtime
// said meanwhile is sent, then the lane goes on.
func (a *agent) settle(r *jsonrpc.Request, at *place, s *session) {
	r.AfterResponse(func() {
		s.host.release(a.base)
		at.leave()
	})
}
