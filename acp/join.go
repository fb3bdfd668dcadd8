package acp

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// joins reports whether a load makes its client another viewer of the session that is open. It
// does if others have the session open, if a turn goes on without a client, or if the client may
// not open sessions. A list of other roots opens the session again: for all if no turn runs, and
// not at all otherwise. A session that another process has taken over cannot be joined.
func (o *opening) joins(ctx context.Context) (bool, error) {
	s := o.previous
	if s == nil {
		return false, nil
	}
	others := s.viewers.Others(o.from) > 0 || !o.from.peer.Role.has(acts)
	running := o.at.Queue.Runs()
	isTurnOfNobody := running && !s.viewers.Has(o.from)
	if !others && !isTurnOfNobody || record.Gone(s.record.Check(ctx)) {
		return false, nil
	}
	same := !o.params.listed || o.rootsIn(s).Equal(s.params.roots)
	if !same && others && (running || !o.from.peer.Role.has(acts)) {
		return false, errOpenElsewhere(s.id, &s.params.roots)
	}
	return same || others, nil
}

// rootsIn returns the roots that the load asks for, with the cwd as s has it.
func (o *opening) rootsIn(s *session) workspace.Roots {
	return workspace.RootsFrom(s.params.roots.Cwd(), o.params.roots.Additional())
}

// join makes the client a viewer, and shows it the history of the session up to now. Others need
// not wait for that: the ticket holds back only this client, and updates that come meanwhile are
// kept.
func (o *opening) join(ctx context.Context, r *jsonrpc.Request) (_ json.RawMessage, err error) {
	if o.params.listed && !o.rootsIn(o.previous).Equal(o.previous.params.roots) {
		if err := o.reopenForAll(ctx); err != nil {
			return nil, err
		}
	}
	a, v := o.agent, o.previous.viewers
	if !v.Enter(o.from) {
		return nil, backend.ErrClosed
	}
	defer func() {
		if err != nil {
			o.previous.leave(o.from)
		}
	}()
	o.at.Narrow()
	shown, err := o.showHistory(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.cut(ctx, shown)
	if err != nil {
		return nil, err
	}
	if err := o.showAll(ctx, c.rest); err != nil {
		return nil, err
	}
	r.AfterResponse(func() {
		// They are newer than those in the response.
		if err := o.showAll(a.base, c.states); err != nil {
			a.log.Debug("updates not sent", "session", c.session.id, "error", err)
		}
		v.Release(o.from)
	})
	o.goOn(r, c.session)
	return c.result, nil
}

// showHistory shows the client what is stored, if it loads, and returns how many updates those are.
func (o *opening) showHistory(ctx context.Context) (shown int, err error) {
	if o.cause == backend.Resume {
		return 0, nil
	}
	for u, err := range sessionstore.Joined(o.history(ctx, &shown)) {
		if err == nil {
			err = o.show(ctx, u, forAnother)
		}
		if err != nil {
			return 0, err
		}
	}
	return shown, nil
}

// history returns the stored history without its first updates, as many as shown says. Those that
// are read are added to shown.
func (o *opening) history(ctx context.Context, shown *int) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		at, skip := 0, *shown
		for u, err := range o.agent.options.Store.History(ctx, o.previous.storeID) {
			if at++; err == nil && at <= skip {
				continue
			}
			*shown = at
			if !yield(u, err) {
				return
			}
		}
	}
}

// cut is the moment at which a client begins to be shown a session with the others.
type cut struct {
	session *session
	rest    []backend.Update // that were not shown before
	states  []backend.Update
	result  json.RawMessage // of the response
}

// cut begins to keep updates for the client, and returns what came before and was not shown.
func (o *opening) cut(ctx context.Context, alreadyShown int) (c cut, err error) {
	// Those that do not read must not hold up this client, nor a prompt that holds the queue.
	defer o.previous.viewers.Hurry()()
	at := o.agent.home.queues.Ticket(o.previous.id, turns.Ordinary, nil)
	defer at.Release()
	if err := at.Acquire(ctx); err != nil {
		return c, err
	}
	s := at.Queue.Active()
	if s == nil || s.viewers != o.previous.viewers {
		return c, errNotActive(o.previous.id) // it was closed meanwhile
	}
	c.session = s
	err = s.viewers.shown.With(ctx, func(now *shown) error {
		if err := s.record.Flush(ctx); err != nil {
			return err
		}
		if o.cause == backend.Load {
			for u, err := range sessionstore.Joined(o.history(ctx, &alreadyShown)) {
				if err != nil {
					return err
				}
				c.rest = append(c.rest, u)
			}
		}
		stored, err := s.agent.options.Store.States(ctx, s.storeID)
		if err != nil {
			return err
		}
		c.states = s.transcript.statesLocked(now, stored)
		c.result = withMeta(s.opened.Result, "viewers", backend.Encode(len(s.viewers.Clients())))
		if len(s.queue.Unanswered()) > 0 {
			c.result = withMeta(c.result, "turn", json.RawMessage(`{"running":true}`))
		}
		s.viewers.Keep(o.from)
		return nil
	})
	return c, err
}

// reopenForAll opens the session again with the roots that the client lists, which becomes one of
// its viewers only then. No turn runs, but the last one may not be answered yet.
func (o *opening) reopenForAll(ctx context.Context) error {
	if err := o.endTurns(ctx); err != nil {
		return err
	}
	s := o.previous
	p := s.params
	p.listed, p.missing = true, nil
	p.replaceRoots(o.rootsIn(s))
	err := o.agent.chooseFolders(ctx, &p, backend.Resume, &o.source.Session)
	if err != nil {
		return err
	}
	next, news, err := s.openAgain(ctx, o.at, o.source, p)
	if err != nil {
		return err
	}
	o.previous = next
	paths := make([]string, 0, p.roots.Len())
	for _, dir := range p.roots.All() {
		paths = append(paths, text.Code(dir.String()))
	}
	news = append(news, backend.Warning(backend.Text(
		"Another window opened this session with other folders. They are now: "+
			strings.Join(paths, ", ")+".")))
	for _, u := range news {
		next.viewers.show(ctx, nil, u)
	}
	return nil
}
