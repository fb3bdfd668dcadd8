package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// load is a request to load or resume a session. It does not change.
type load struct {
	from   *connection
	cause  backend.Cause
	params sessionParams // as the client sent them
	at     *ticket       // in the session's queue
	to     address       // of the session, for the client
	pace   pace          // of what the client is shown
}

// acceptLoad serves session/load and session/resume.
func (c *connection) acceptLoad(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	at := c.home.queues.Ticket(sessionOf(r), turns.Lifecycle, c) // decodeSession checks the id
	cause, servers, pace := backend.Cause(r.Method), required, c.pace(ctx)
	if cause == backend.Resume {
		servers = optional
	}
	hurried := func() {}
	if s := at.Queue.Active(); s != nil { // its messages must not wait for viewers that do not read
		hurried = s.viewers.Hurry()
	}
	return c.work(ctx, func(ctx context.Context) (json.RawMessage, error) {
		defer r.AfterResponse(at.Release) // what goOn does comes first
		defer hurried()
		p, err := c.decodeSession(ctx, r.Params, loadShape, required, servers)
		if err != nil {
			return nil, err
		}
		if err := at.Acquire(ctx); err != nil {
			return nil, err
		}
		hurried()
		l := load{from: c, cause: cause, params: p, at: at, to: newAddress(p.id), pace: pace}
		return l.serve(ctx, r)
	})
}

// serve opens a stored session, makes the client another viewer of the active one, or shows it a
// session that it may not open. If the history cannot be read or sent, the session is closed, and
// remains stored with its new roots.
func (l load) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	a, previous := l.from.agent, l.at.Queue.Active()
	if previous != nil {
		if previous.agent.identity() != a.identity() {
			return nil, errOpenElsewhere(l.to.id, nil)
		}
		a = previous.agent
	}
	source, err := a.find(ctx, l.params)
	if err != nil {
		return nil, err
	}
	joins, err := l.joins(ctx, previous)
	switch {
	case err != nil:
		return nil, err
	case joins:
		return l.join(ctx, r, previous, source)
	case !l.from.peer.Role.has(acts):
		return json.RawMessage(`{}`), l.view(ctx, a, source)
	}
	o := opening{agent: a, cause: l.cause, params: l.params, source: source, at: l.at, from: l.from}
	if l.cause == backend.Load {
		o.show = func(ctx context.Context, u backend.Update) error {
			return l.show(ctx, u, l.from.occasionFrom(a))
		}
	}
	if err := a.chooseFolders(ctx, &o.params, l.cause, &source.Session); err != nil {
		return nil, err
	}
	s, notice, err := o.run(ctx, previous)
	if err != nil {
		return nil, err
	}
	if l.cause == backend.Load {
		// A session whose history cannot be shown does not stay open.
		if err := l.replay(context.WithoutCancel(ctx), s); err != nil {
			s.close(a.base, nil)
			return nil, err
		}
	}
	l.from.goOn(r, s, notice)
	return s.result, nil
}

// find returns the session that a request names, with its working directory.
func (a *agent) find(ctx context.Context, p sessionParams) (listing.Openable, error) {
	found, err := a.sessions.Find(ctx, p.id, p.roots.Cwd())
	if err == nil {
		err = a.sessions.MatchCwd(ctx, p.roots.Cwd(), found.Keys)
	}
	return found, err
}

// view shows a client that may not open the session what is stored of it. The session is not open
// here, and perhaps in another process, which keeps it.
func (l load) view(ctx context.Context, a *agent, source listing.Openable) error {
	if source.Unstored {
		return errUnknownSession(l.to.id)
	}
	store := a.options.Store
	if l.cause == backend.Load {
		history := store.History(ctx, source.ID)
		if err := l.showHistory(ctx, history, func(string) bool { return true }); err != nil {
			return err
		}
	}
	states, err := store.States(ctx, source.ID)
	if err != nil {
		return err
	}
	return l.showAll(ctx, states)
}
