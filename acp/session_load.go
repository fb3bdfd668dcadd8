package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

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
		o := &opening{agent: c.agent, cause: cause, address: newAddress(p.id), params: p,
			at: at, from: c, pace: pace}
		return o.load(ctx, r)
	})
}

// load opens a stored session, makes the client another viewer of the active one, or shows it a
// session that it may not open. If the history cannot be read or sent, the session is closed, and
// remains stored with its new roots.
func (o *opening) load(ctx context.Context, r *jsonrpc.Request) (_ json.RawMessage, err error) {
	if o.previous = o.at.Queue.Active(); o.previous != nil {
		if o.previous.agent.identity() != o.agent.identity() {
			return nil, errOpenElsewhere(o.address.id, nil)
		}
		o.agent = o.previous.agent
	}
	a := o.agent
	if o.source, err = a.find(ctx, o.params); err != nil {
		return nil, err
	}
	switch joins, err := o.joins(ctx); {
	case err != nil:
		return nil, err
	case joins:
		return o.join(ctx, r)
	case !o.from.peer.Role.has(acts):
		return json.RawMessage(`{}`), o.view(ctx)
	}
	if err := a.chooseFolders(ctx, &o.params, o.cause, &o.source.Session); err != nil {
		return nil, err
	}
	s, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	if o.cause == backend.Load {
		// A session whose history cannot be shown does not stay open.
		if err := o.replay(context.WithoutCancel(ctx), s); err != nil {
			s.close(a.base, nil)
			return nil, err
		}
	}
	o.goOn(r, s)
	return s.opened.Result, nil
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
func (o *opening) view(ctx context.Context) error {
	if o.source.Unstored {
		return errUnknownSession(o.address.id)
	}
	if o.cause == backend.Load {
		if err := o.replayHistory(ctx, func(string) bool { return true }); err != nil {
			return err
		}
	}
	states, err := o.agent.options.Store.States(ctx, o.source.ID)
	if err != nil {
		return err
	}
	return o.showAll(ctx, states)
}
