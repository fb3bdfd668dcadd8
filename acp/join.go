package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/folders"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// entry is how a load lets its client into a session.
type entry int

const (
	entryOpen     entry = iota // opens the session, in place of one that is open
	entryView                  // shows what is stored, because the client may not open sessions
	entryJoin                  // makes the client another viewer
	entryJoinAnew              // opens the session again with other roots for all, then joins it
)

// choose returns how the client gets into the session, of which s is open or nil. It joins s if
// others have that open, if a turn goes on without a client, or if the client may not open
// sessions. A list of other roots opens the session again: for all if no turn runs, and not at all
// otherwise. A session that another process has taken over cannot be joined.
func (l load) choose(ctx context.Context, s *session) (entry, error) {
	mayOpen, alone := l.from.peer.Role.has(toAct), entryOpen
	if !mayOpen {
		alone = entryView
	}
	if s == nil {
		return alone, nil
	}
	others := s.viewers.Others(l.from) > 0 || !mayOpen
	running := l.ticket.Queue.Runs()
	isTurnOfNobody := running && !s.viewers.Has(l.from)
	switch {
	case !others && !isTurnOfNobody, record.Gone(s.record.Check(ctx)):
		return alone, nil
	case !l.params.folders.Listed(), l.foldersIn(s).Roots().Equal(s.params.folders.Roots()):
		return entryJoin, nil
	case !others:
		return entryOpen, nil
	case running, !mayOpen:
		return entryOpen, errOpenElsewhere(s.id, new(s.params.folders.Roots()))
	}
	return entryJoinAnew, nil
}

// foldersIn returns the folders that the load asks for, with the cwd as s has it.
func (l load) foldersIn(s *session) folders.Set {
	return l.params.folders.In(s.params.folders)
}

// join makes the client a viewer of s, and shows it the history up to now. Others need not wait for
// that: the ticket holds back only this client, and updates that come meanwhile are kept.
func (l load) join(
	ctx context.Context, r *jsonrpc.Request, s *session,
) (_ json.RawMessage, err error) {
	joining, ok := s.viewers.Enter(l.from)
	if !ok {
		return nil, backend.ErrClosed
	}
	defer func() {
		if err != nil {
			s.leave(l.from)
		}
	}()
	l.ticket.StepAside()
	var last int64 // the last segment of the history that was shown
	if err := l.showHistory(ctx, l.history(ctx, s.adapter, s.storeID, &last)); err != nil {
		return nil, err
	}
	c, err := l.cut(ctx, s, joining, last)
	if err != nil {
		return nil, err
	}
	if err := l.show(ctx, forAnother, c.rest...); err != nil {
		return nil, err
	}
	r.AfterResponse(func() {
		// They are newer than those in the response.
		if err := l.show(s.adapter.base, forAnother, c.states...); err != nil {
			s.adapter.log.Debug("updates not sent", "session", s.id, "error", err)
		}
		c.release()
	})
	l.from.stay(r, c.session)
	return c.result, nil
}

// cut is the moment at which a client begins to be shown a session with the others.
type cut struct {
	session *session
	rest    []backend.Update // that were not shown before
	states  []backend.Update
	result  json.RawMessage // of the response
	release func()          // sends the client what was kept since
}

// cut begins to keep updates of joined, or of the session that has replaced it, for the client. It
// returns what came before, after the last segment that was shown.
func (l load) cut(
	ctx context.Context, joined *session, joining turns.Joining[*connection], last int64,
) (c cut, err error) {
	// Those that do not read must not hold up this client, nor a prompt that holds the queue.
	defer joined.viewers.Hurry()()
	ticket := joined.adapter.home.queues.Ticket(joined.id, turns.Ordinary, nil)
	defer ticket.Release()
	if err := ticket.Acquire(ctx); err != nil {
		return c, err
	}
	s := ticket.Queue.Active()
	if s == nil || s.viewers != joined.viewers {
		return c, errNotActive(joined.id) // it was closed meanwhile
	}
	c.session = s
	err = s.viewers.Shown.With(ctx, func(now *transcript.Shown) error {
		if err := s.record.Flush(ctx); err != nil {
			return err
		}
		for u, err := range l.history(ctx, s.adapter, s.storeID, &last) {
			if err != nil {
				return err
			}
			c.rest = append(c.rest, u)
		}
		stored, err := s.adapter.options.Store.States(ctx, s.storeID)
		if err != nil {
			return err
		}
		for _, u := range now.States(stored) {
			c.states = append(c.states, s.transcript.Announce(u))
		}
		c.result = protocol.SetOurs(s.result, "viewers", backend.Encode(len(s.viewers.Clients())))
		decided := (*turns.Turn).IsDecided
		if len(slices.DeleteFunc(s.queue.Unanswered(), decided)) > 0 {
			c.result = protocol.SetOurs(c.result, "turn", json.RawMessage(`{"running":true}`))
		}
		c.release = joining.Keep()
		return nil
	})
	return c, err
}

// changeRoots opens s again with the roots that the client lists, which becomes one of its viewers
// only then. No turn runs, but the last one may not be answered yet.
func (l load) changeRoots(
	ctx context.Context, s *session, source listing.Openable,
) (*session, error) {
	if err := l.ticket.Queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
		return nil, err
	}
	p, err := s.adapter.chooseFolders(ctx, s.params.withFolders(l.foldersIn(s)), backend.Resume,
		source.Session)
	if err != nil {
		return nil, err
	}
	next, news, err := s.reopenForAll(ctx, l.ticket, source, p)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, dir := range p.folders.Roots().All() {
		paths = append(paths, text.Code(dir.String()))
	}
	news = append(news, backend.Warning(backend.Text(
		"Another window opened this session with other folders. They are now: "+
			strings.Join(paths, ", ")+".")))
	for _, u := range news {
		next.viewers.ShowAll(ctx, u)
	}
	return next, nil
}
