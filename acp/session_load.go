package acp

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/pace"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// load is a request to load or resume a session. It does not change.
type load struct {
	from   *connection
	cause  backend.Cause
	params sessionParams         // as the client sent them
	ticket *ticket               // in the session's queue
	to     address.Address       // of the session, for the client
	pace   func(context.Context) // waits until the next update may be sent
}

// acceptLoad serves session/load and session/resume.
func (c *connection) acceptLoad(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	ticket := c.home.queues.Ticket(sessionOf(r), turns.Lifecycle, c) // decodeSession checks the id
	cause, servers := backend.Cause(r.Method), required
	paced := pace.New(ctx, c.adapter.options.ReplayRate, c.clientCapabilities().unlimited)
	if cause == backend.Resume {
		servers = optional
	}
	return c.work(ctx, func(ctx context.Context) (json.RawMessage, error) {
		defer r.AfterResponse(ticket.Release) // what goOn does comes first
		p, err := c.decodeSession(ctx, r.Params, loadShape, required, servers)
		if err != nil {
			return nil, err
		}
		l := load{from: c, cause: cause, params: p, ticket: ticket, to: address.New(p.id),
			pace: paced}
		if err := l.acquire(ctx); err != nil {
			return nil, err
		}
		return l.serve(ctx, r)
	})
}

// acquire waits until the request holds the queue. The messages of what comes before it do not wait
// for viewers that do not read.
func (l load) acquire(ctx context.Context) error {
	if s := l.ticket.Queue.Active(); s != nil {
		defer s.viewers.Hurry()()
	}
	return l.ticket.Acquire(ctx)
}

// serve opens a stored session, makes the client another viewer of the active one, or shows it a
// session that it may not open. If the history cannot be read or sent, the session is closed, and
// remains stored with its new roots.
func (l load) serve(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	a, active := l.from.adapter, l.ticket.Queue.Active()
	if active != nil {
		if active.adapter.identity() != a.identity() {
			return nil, errOpenElsewhere(l.to.ID, nil)
		}
		a = active.adapter
	}
	source, err := a.find(ctx, l.params)
	if err != nil {
		return nil, err
	}
	how, err := l.choose(ctx, active)
	if err != nil {
		return nil, err
	}
	switch how {
	case entryView:
		return json.RawMessage(`{}`), l.view(ctx, a, source)
	case entryJoinAnew:
		if active, err = l.changeRoots(ctx, active, source); err != nil {
			return nil, err
		}
		return l.join(ctx, r, active)
	case entryJoin:
		return l.join(ctx, r, active)
	}
	s, err := l.open(ctx, a, source, active)
	if err != nil {
		return nil, err
	}
	l.from.goOn(r, s)
	return s.result, nil
}

// open opens the session in place of the active one, which may be nil, and shows the client the
// history.
func (l load) open(
	ctx context.Context, a *adapter, source listing.Openable, active *session,
) (*session, error) {
	p, err := a.chooseFolders(ctx, l.params, l.cause, source.Session)
	if err != nil {
		return nil, err
	}
	o := opening{adapter: a, cause: l.cause, asked: p, source: source, storeID: source.ID,
		previous: active, ticket: l.ticket, viewers: newViewers(a, l.from, l.to),
		show: func(ctx context.Context, u backend.Update) error {
			return l.show(ctx, l.from.occasionFrom(a), u)
		}}
	s, err := o.run(ctx)
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
	return s, nil
}

// find returns the session that a request names, with its working directory.
func (a *adapter) find(ctx context.Context, p sessionParams) (listing.Openable, error) {
	found, err := a.sessions.Find(ctx, p.id, p.folders.Cwd())
	if err == nil {
		err = a.sessions.MatchCwd(ctx, p.folders.Cwd(), found.Keys)
	}
	return found, err
}

// view shows a client that may not open the session what is stored of it. The session is not open
// here, and perhaps in another process, which keeps it.
func (l load) view(ctx context.Context, a *adapter, source listing.Openable) error {
	if source.Unstored {
		return errUnknownSession(l.to.ID)
	}
	history, has := l.history(ctx, a, source.ID, new(int64)), func(string) bool { return true }
	if err := l.showHistory(ctx, calls.WithEnds(history, has)); err != nil {
		return err
	}
	states, err := a.options.Store.States(ctx, source.ID)
	if err != nil {
		return err
	}
	return l.show(ctx, forAnother, states...)
}

// replay shows the client the conversation of s, which it has loaded, before the response: the
// stored history, unless that was shown as the backend replayed it, then the current states.
func (l load) replay(ctx context.Context, s *session) error {
	if !s.host.replay.Shown() {
		history := l.history(ctx, s.adapter, s.storeID, new(int64))
		if err := l.showHistory(ctx, calls.WithEnds(history, s.hasSubagent)); err != nil {
			return err
		}
	}
	states, err := s.adapter.options.Store.States(ctx, s.storeID)
	if err != nil {
		return err
	}
	learns := s.gate.Kinds()
	for _, u := range transcript.StatesIn(s.result) {
		learns[u.Kind] = true
	}
	var news []backend.Update
	for _, u := range states {
		if !learns[u.Kind] {
			news = append(news, s.transcript.Announce(u))
		}
	}
	return l.show(ctx, forAnother, news...)
}

// history yields a stored history as clients are shown it, after the segment whose number last has,
// and moves that on. A client that resumes a session is shown none.
func (l load) history(
	ctx context.Context, a *adapter, id sessionstore.ID, last *int64,
) iter.Seq2[backend.Update, error] {
	segments := func(yield func(sessionstore.Segment, error) bool) {
		if l.cause != backend.Load {
			return
		}
		for segment, err := range a.options.Store.Segments(ctx, id, *last) {
			*last = max(*last, segment.Number)
			if !yield(segment, err) {
				return
			}
		}
	}
	return sessionstore.Joined(sessionstore.Updates(segments))
}

// showHistory shows the client a stored history.
func (l load) showHistory(ctx context.Context, history iter.Seq2[backend.Update, error]) error {
	for u, err := range history {
		if err == nil {
			err = l.show(ctx, forAnother, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// show sends the client that loads updates, and waits before each until the client has room.
func (l load) show(ctx context.Context, when occasion, updates ...backend.Update) error {
	send := func(method string, params json.RawMessage) error {
		return l.from.Notify(ctx, method, params)
	}
	for _, u := range updates {
		l.pace(ctx)
		if err := l.from.deliver(l.to, u, l.to.Update(u), when, send); err != nil {
			return err
		}
	}
	return nil
}
