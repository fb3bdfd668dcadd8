package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A session ends for one of these reasons. The first five close it, once its turns have ended. Then
// it is freed.
//
//	reason                                    function               its turns end
//	a request closes, archives or deletes it  queuedRequest.end      as cancelled
//	nobody who may answer views it any more   session.closeWhenIdle  in time, or as cancelled
//	another process has opened or deleted it  session.evict          with that as the error
//	the adapter ends                          adapter.shutdown       as cancelled
//	its history cannot be shown               load.open              (it has none)
//	another session takes its place           opening.discard        as cancelled, or in that one
//	it cannot become active                   opening.run            (it has none)

// close closes s if it is the active session of its queue. No turn runs in it. params are those of
// a session/close, or nil; the result is the backend's part of the response.
func (s *session) close(ctx context.Context, params backend.Raw) json.RawMessage {
	if !s.queue.Deactivate(s) {
		return nil
	}
	defer s.viewers.Close()
	defer s.conversation.end(ctx)
	return s.free(ctx, params)
}

// free frees what s holds, once. params and the result are as in close.
func (s *session) free(ctx context.Context, params backend.Raw) (result json.RawMessage) {
	s.host.free(ctx,
		func(ctx context.Context) error {
			s.adapter.connection.observeUsage(s.id, s.spending.Store(ctx))
			return s.record.Close(ctx)
		},
		func(ctx context.Context) (err error) {
			result, err = closeBackend(ctx, s.backend, params)
			return err
		})
	return result
}

// closeAll closes what a session holds, step by step. It goes on if one fails or panics.
func (a *adapter) closeAll(
	ctx context.Context, id sessionstore.ID, steps ...func(context.Context) error,
) {
	ctx, cancel := context.WithTimeout(ctx, tasks.CommitTimeout)
	defer cancel()
	var failed error
	for _, step := range steps {
		err := a.tasks.Guard("close", func() error { return step(ctx) })
		failed = errors.Join(failed, err)
	}
	if failed != nil && !errors.Is(failed, backend.ErrClosed) { // the client's end was faster
		a.log.Warn("cannot close the session", "session", id, "error", failed)
	}
}

// closeBackend closes a backend's session, and passes params on if they are those of a
// session/close.
func closeBackend(
	ctx context.Context, s backend.Session, params backend.Raw,
) (json.RawMessage, error) {
	closer, ok := s.(backend.Closer)
	if !ok || params == nil {
		return nil, s.Close(ctx)
	}
	result, err := closer.CloseFor(ctx, params)
	if err != nil || !strictjson.IsObject(result) {
		return nil, err
	}
	return lifecycleResult(result)
}

// exclusively calls do once earlier requests were served, if s is active then. Later ones wait.
func (s *session) exclusively(ticket *ticket, do func()) {
	defer ticket.Release()
	if ticket.Acquire(s.adapter.base) == nil && ticket.Queue.Active() == s {
		do()
	}
}

// failed handles a failed write to the store. It ends the running turns, and also the session if
// another process took it over or deleted it.
func (s *session) failed(err error) {
	cause := record.AsFenced(err)
	if !errors.Is(err, context.Canceled) {
		running := slices.DeleteFunc(s.queue.Unanswered(),
			func(t *turns.Turn) bool { return !t.StartedIn(s) })
		s.adapter.tasks.Go(func() { turns.End(running, cause, nil) })
	}
	if record.Gone(err) {
		s.evict(cause)
	}
}

// evict ends a session that another process took over or deleted, and withdraws a question outside
// turns.
func (s *session) evict(cause error) {
	a := s.adapter
	ticket := a.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	a.tasks.Go(func() {
		s.exclusively(ticket, func() {
			a.log.Info("the session ends: another process opened or deleted it", "session", s.id,
				"cause", cause)
			if s.queue.EndTurns(a.base, cause) != nil {
				return
			}
			if s.viewers.Stop(nil) {
				s.viewers.ShowGone(a.base, cause, "The question is withdrawn here.")
			}
			s.close(a.base, nil)
		})
	})
}

// leave takes a client from the viewers of s. The turns of a remote client go on with the other
// viewers, or without any, until they end or the grace has passed.
func (s *session) leave(c *connection) {
	if s.viewers.Leave(c) {
		s.closeWhenIdle(c.graceNow())
	}
}

// closeWhenIdle ends s if it has no viewer that may answer, once its turns have ended or the given
// time has passed. It stops if such a viewer comes.
func (s *session) closeWhenIdle(during time.Duration) {
	back := s.viewers.Alone()
	if back == nil {
		return
	}
	s.adapter.tasks.Go(func() {
		grace, cancel := context.WithTimeout(context.Background(), during)
		defer cancel()
		for running := s.closeUnviewed(grace); running != nil; running = s.closeUnviewed(grace) {
			select {
			case <-running.Done():
			case <-grace.Done():
			case <-back:
				return
			case <-s.adapter.base.Done(): // the adapter closes s
				return
			}
		}
	})
}

// closeUnviewed ends s once earlier requests were served, unless a client has opened it. While the
// grace lasts and a turn is running, it leaves s as it is, and returns that turn.
func (s *session) closeUnviewed(grace context.Context) (running *turns.Turn) {
	s.exclusively(s.adapter.home.queues.Ticket(s.id, turns.Lifecycle, nil), func() {
		if s.viewers.Alone() == nil {
			return
		}
		if all := s.queue.Unanswered(); len(all) > 0 && grace.Err() == nil {
			running = all[0]
			return
		}
		if s.queue.EndTurns(s.adapter.base, backend.ErrCancelled) == nil {
			s.close(s.adapter.base, nil)
		}
	})
	return running
}
