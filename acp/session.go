package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is one activation of a session: its conversation is open in this process. It implements
// [backend.Host] and [turns.Session]. opening.run makes it, and close ends it.
type session struct {
	parts
	questions // implement the part of [backend.Host] that reaches the client

	// inBackend is held during methods of the backend's session, which must not overlap and may not
	// wait for a client.
	inBackend sync.Mutex
	scanning  tasks.Guarded[struct{}] // used while the roots are scanned
	closed    sync.Once

	mu    sync.Mutex // guards state, and is held for a few statements
	state state
}

// parts are what a session is made of. They do not change once it is open.
type parts struct {
	address                 // for the client
	storeID sessionstore.ID // another one than the client's if that is the backend's own
	agent   *agent
	queue   *queue
	params  sessionParams // of the request that opened it
	viewers *viewers
	gate    *gate.Gate
	replay  *agentReplay // nil for a new one and a fork

	workspace *workspace.Workspace
	access    *access.Access
	servers   *servers.Set
	backend   backend.Session
	opened    backend.Opened // the backend's part of the response that opened it

	record   *record.Record
	spending *metering.Spending
	budgets  *budgets
}

// state is what changes in a session.
type state struct {
	// holds means that the session counts as active, and closes its MCP servers. The one that
	// replaces it takes over both.
	holds    bool
	catalog  *discovery.Catalog
	agentHas []string // the adapter's names that the backend's commands have
	notice   pendingNotice
}

// withState calls do with the session's state.
func (s *session) withState(do func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.state)
}

// letGo reports whether the session holds what the one that replaces it takes over. Afterwards it
// no longer does.
func (s *session) letGo() (held bool) {
	s.withState(func(now *state) { held, now.holds = now.holds, false })
	return held
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
func (s *session) WithBackend(do func()) {
	s.inBackend.Lock()
	defer s.inBackend.Unlock()
	do()
}

// Prompt implements [turns.Session].
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	return s.backend.Prompt(ctx, params, u)
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

// order says whether an update is shown or stored first.
type order bool

const (
	// showFirst does not wait for the record to be stored.
	showFirst order = false
	// storeFirst shows an update once that and everything before it is stored.
	storeFirst order = true
)

// send shows the viewers an update and records it, in the given order. The adapter's commands are
// added to those of the backend.
func (s *session) send(ctx context.Context, u backend.Update, in order) error {
	if err := checkUpdate(u); err != nil {
		return err
	}
	u = s.announce(u)
	return s.viewers.shown.With(ctx, func(now *shown) error { return s.sendNow(ctx, now, u, in) })
}

// sendNow is send while no other update is being shown.
func (s *session) sendNow(ctx context.Context, now *shown, u backend.Update, in order) error {
	s.charged(s.agent.connection, s.spending.Note(ctx, u))
	if u.Kind == sessionstore.SessionInfoUpdate && now.renamed {
		var more bool
		if u, more = withoutTitle(u); !more {
			return nil
		}
	}
	if in == showFirst {
		s.viewers.show(ctx, nil, u)
	}
	err := s.addToRecord(ctx, u)
	if err == nil && in == storeFirst {
		if err = tasks.Insist(ctx, s.record.Flush); err == nil {
			s.viewers.show(ctx, nil, u)
		}
	}
	if err != nil {
		return asFenced(err)
	}
	delete(now.settings, u.Kind)
	now.noteMode(u)
	now.noteTitle(u)
	return s.noteCall(ctx, now, u)
}

// shown is what the viewers of a session were shown last, as far as later updates depend on it.
type shown struct {
	titled  bool   // the session has a title
	renamed bool   // a client has chosen it
	mode    string // its id, "" if it is not known
	unruled bool   // the user was told that the agent does not ask
	// settings are what a client has set, if the agent has not sent an update of that kind since.
	settings map[sessionstore.Kind]backend.Update
}

// checkUpdate rejects an update that is not a JSON object, which a backend can build without
// ParseUpdate.
func checkUpdate(u backend.Update) error {
	if !strictjson.IsObject(u.Raw) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent sent an update that is not an object")
	}
	return nil
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

// tellGone tells the user what is lost because the session is gone.
func (s *session) tellGone(ctx context.Context, err error, lost string) {
	what := "\n\nThis session was opened in another window. " + lost +
		" Load the session again to continue it here.\n"
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		what = "\n\nThis session was deleted in another window. " + lost + "\n"
	}
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	s.viewers.show(ctx, nil, backend.Warning(backend.Text(what)))
}

// retire closes a session that is not the active one of its queue, or was not opened completely.
func (s *session) retire() {
	ctx, cancel := tasks.Commit(s.agent.base)
	defer cancel()
	s.close(ctx, nil)
}

// close frees what the session holds, once. Its last turn has ended. params are those of a
// session/close, or nil; the result is the backend's part of the response.
func (s *session) close(ctx context.Context, params backend.Raw) (result json.RawMessage) {
	s.closed.Do(func() {
		a, err := s.agent, error(nil)
		held := s.letGo()
		if held {
			defer a.home.owner.release(sessionSlot, a) // last: the agent may end then
		}
		s.gate.Advance(gate.Closed)
		if s.record != nil {
			s.charged(a.connection, s.spending.Store(ctx))
			err = s.record.Close(ctx)
		}
		if s.backend != nil {
			err = errors.Join(err, a.tasks.Guard("close", func() (err error) {
				result, err = s.closeBackend(ctx, params)
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

// closeBackend closes the backend's session, and passes params on if they are those of a
// session/close.
func (s *session) closeBackend(ctx context.Context, params backend.Raw) (json.RawMessage, error) {
	closer, ok := s.backend.(backend.Closer)
	if !ok || params == nil {
		return nil, s.backend.Close(ctx)
	}
	result, err := closer.CloseFor(ctx, params)
	if err != nil || !strictjson.IsObject(result) {
		return nil, err
	}
	return lifecycleResult(result)
}

// addToRecord records u. A warning is recorded as the message that it is for clients without
// notices, if the first viewer is one.
func (s *session) addToRecord(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		if s.viewers.firstTakesNotices() {
			return nil
		}
		u = message
	}
	return s.record.Add(ctx, u)
}

// appendSegment stores a segment, and the latest title in it.
func (s *session) appendSegment(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	title, store := latestTitle(segment), s.agent.options.Store
	err := store.Append(ctx, l, segment)
	if err != nil || title == nil {
		return err
	}
	return store.SetTitle(ctx, l, *title)
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
		grace := time.After(during)
		for over := during == 0; !s.closeUnviewed(over); {
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
			case <-grace:
				over = true
			}
		}
	})
}

// closeUnviewed closes s once earlier requests are served, unless a client has opened it. If a turn
// is still running, closeUnviewed ends it once the grace has passed; before that it leaves s open
// and reports false.
func (s *session) closeUnviewed(over bool) bool {
	base := s.agent.base
	at := s.agent.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	defer at.Release()
	if at.Acquire(base) != nil || at.Queue.Active() != s || s.viewers.Alone() == nil {
		return true
	}
	if !over && len(at.Queue.Unanswered()) > 0 {
		return false
	}
	_, _ = endActive(base, base, at, nil)
	return true
}
