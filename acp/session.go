package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is one activation of a session: its conversation is open in this process. It implements
// [backend.Host] and [turns.Session]. opening.run makes it. While it is active, end or close ends
// it, otherwise retire.
type session struct {
	// The parts, which do not change once the session is open:
	id      sessionstore.ID // the client's
	storeID sessionstore.ID // another one if that is the backend's own
	agent   *agent
	queue   *queue
	params  sessionParams // of the request that opened it
	viewers *viewers
	gate    *gate.Gate
	replay  *agentReplay // nil for a new one and a fork
	budgets *budgets

	workspace *workspace.Workspace
	access    *access.Access
	catalog   *catalog
	servers   *servers.Set
	backend   backend.Session
	opened    backend.Opened // the backend's part of the response that opened it

	record     *record.Record // nil until the session is stored, as the following
	spending   *metering.Spending
	transcript *transcript

	// inBackend is held while backend runs a method. Its methods must not overlap, and may not wait
	// for a client.
	inBackend sync.Mutex
	freed     sync.Once
	// holds means that the session counts as active, and closes its MCP servers. The one that
	// replaces it takes over both.
	holds  atomic.Bool
	notice atomic.Pointer[pendingNotice]
}

// watchLease ends the session soon after another process has taken it over, until ctx ends: also if
// the agent says nothing, so that nothing is stored.
func (s *session) watchLease(ctx context.Context) {
	s.agent.tasks.Go(func() {
		for range pause.Every(ctx, s.agent.options.tuning.LeaseCheck) {
			if err := s.record.Check(ctx); record.Gone(err) {
				s.failed(err)
				return
			}
		}
	})
}

// WithBackend implements [turns.Session].
func (s *session) WithBackend(do func(backend.Session)) {
	s.inBackend.Lock()
	defer s.inBackend.Unlock()
	do(s.backend)
}

// Cancel implements [turns.Session]. Open questions end with the last turn, because an agent may
// end it only once they are answered. A panic in the backend is logged.
func (s *session) Cancel(params backend.Raw) {
	_ = s.agent.tasks.Guard("cancel", func() error {
		s.backend.Cancel(params)
		return nil
	})
	if !s.inTurn() {
		s.viewers.Stop(nil)
	}
}

// inTurn reports whether a turn is running that was not told to end.
func (s *session) inTurn() bool {
	return slices.ContainsFunc(s.queue.Unanswered(), func(t *turns.Turn) bool {
		return t.RunsIn(s)
	})
}

// failed handles a failed write to the store. It ends the running turns, and also the session if
// another process took it over or deleted it.
func (s *session) failed(err error) {
	cause := asFenced(err)
	if !errors.Is(err, context.Canceled) {
		running := slices.DeleteFunc(s.queue.Unanswered(),
			func(t *turns.Turn) bool { return !t.StartedIn(s) })
		s.agent.tasks.Go(func() { turns.End(running, cause, nil) })
	}
	if record.Gone(err) {
		s.evict(cause)
	}
}

// fencedError is an error of the store after which nothing more of a session is stored. It wraps
// backend.ErrFenced, because backends do not know the store.
type fencedError struct{ error }

func (e fencedError) Unwrap() []error { return []error{backend.ErrFenced, e.error} }

// asFenced returns err as a fencedError if it says that the session is gone.
func asFenced(err error) error {
	if record.Gone(err) {
		return fencedError{err}
	}
	return err
}

// retire ends a session that is not the active one of its queue, or was not opened completely.
func (s *session) retire() { s.free(context.WithoutCancel(s.agent.base), nil) }

// free frees what the session holds, once. params are those of a session/close, or nil; the result
// is the backend's part of the response.
func (s *session) free(ctx context.Context, params backend.Raw) (result json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, tasks.CommitTimeout)
	defer cancel()
	s.freed.Do(func() {
		a, err := s.agent, error(nil)
		held := s.holds.Swap(false)
		if held {
			defer a.home.owner.release(sessionSlot, a) // last: the agent may end then
		}
		s.gate.Advance(gate.Closed)
		if s.record != nil {
			a.connection.observeUsage(s.id, s.spending.Store(ctx))
			err = s.record.Close(ctx)
		}
		if s.backend != nil {
			err = errors.Join(err, a.tasks.Guard("close", func() (err error) {
				result, err = closeBackend(ctx, s.backend, params)
				return err
			}))
		}
		if held && s.servers != nil {
			err = errors.Join(err, s.servers.Close(ctx))
		}
		err = errors.Join(err, s.replay.drop(ctx))
		if s.workspace != nil {
			err = errors.Join(err, s.workspace.Close())
		}
		if err != nil && !errors.Is(err, backend.ErrClosed) { // the end of the client was faster
			a.log.Warn("cannot close the session", "session", s.id, "error", err)
		}
	})
	return result
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

// The turns of a remote client outlive its connection: they go on with the other viewers of the
// session, or without any, until they end or the grace has passed.

// leave takes a client from the viewers of s.
func (s *session) leave(c *connection) {
	if s.viewers.Leave(c) {
		s.closeWhenIdle(c.graceNow())
	}
}

// closeWhenIdle closes s if it has no viewer that may answer, once its turns have ended or the
// given time has passed. It stops if such a viewer comes.
func (s *session) closeWhenIdle(during time.Duration) {
	back := s.viewers.Alone()
	if back == nil {
		return
	}
	s.agent.tasks.Go(func() {
		grace, cancel := context.WithTimeout(context.Background(), during)
		defer cancel()
		for !s.closeUnviewed(grace) {
			running := s.queue.Unanswered()
			if len(running) == 0 { // the last one has just ended
				continue
			}
			select {
			case <-running[0].Done():
			case <-back:
				return
			case <-s.agent.base.Done():
				return
			case <-grace.Done():
			}
		}
	})
}

// closeUnviewed ends s once earlier requests are served, unless a client has opened it. While a turn
// is running and the grace lasts, it leaves s as it is and reports false.
func (s *session) closeUnviewed(grace context.Context) bool {
	base := s.agent.base
	at := s.agent.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	defer at.Release()
	if at.Acquire(base) != nil || at.Queue.Active() != s || s.viewers.Alone() == nil {
		return true
	}
	if grace.Err() == nil && len(s.queue.Unanswered()) > 0 {
		return false
	}
	_, _ = s.end(base, base, nil)
	return true
}
