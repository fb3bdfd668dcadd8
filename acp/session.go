package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is one activation of a session, with its opened roots, its backend and its lease.
type session struct {
	id        sessionstore.ID
	address   address
	agent     *agent
	queue     *queue
	params    sessionParams // of the request that opened it
	workspace *workspace.Workspace
	backend   backend.Session
	servers   *sessionServers
	host      *host
	record    *record
	spending  *spending
	opened    backend.Opened // the backend's part of the response that opened it
	counted   bool           // against the limit of active sessions, when it was opened
	broad     []string       // by root, from broadDir
	change    serverChange   // until it is active

	inBackend sync.Mutex    // held during methods of the backend's session that must not overlap
	updates   chan struct{} // holds one value while an update is shown and recorded, in this order

	// Guarded by updates:
	toolCalls   map[callKey]toolCall // the latest that the client knows
	toolCallIDs []callKey            // their ids, oldest first
	mode        string               // its id, "" if it is not known
	unruled     bool                 // the user was told that the agent does not ask
	// settings are what a client has set, if the agent has not sent an update of that kind since.
	settings map[sessionstore.Kind]backend.Update

	leasing sync.RWMutex // held for reading by writes, for writing while the lease changes
	lease   sessionstore.Lease

	titled   atomic.Bool // the session has a title
	renamed  atomic.Bool // a client has chosen it
	notice   string      // for the user, at the next prompt; guarded by the queue
	prompted bool        // the user was told about workspace files; guarded by the queue
	ending   sync.Mutex  // guards unended
	unended  []int64     // the numbers of turns whose end could not be stored
	evicted  sync.Once
	closed   sync.Once
}

// watch ends the session soon after another process has taken it over or deleted it, if the store
// announces that.
func (s *session) watch() {
	changed, stop := s.agent.options.Store.Watch(s.id)
	if changed == nil {
		return
	}
	s.agent.tasks.Go(func() {
		defer stop()
		for {
			select {
			case <-changed:
				if err := s.checkLease(s.agent.base); gone(err) {
					s.failed(err)
					return
				}
			case <-s.record.closed:
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
func (s *session) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	return s.backend.Prompt(ctx, params, u)
}

// Cancel implements [turns.Session]. A panic in the backend is logged.
func (s *session) Cancel(params backend.Raw) {
	_ = s.agent.tasks.Guard("cancel", func() error {
		s.backend.Cancel(params)
		return nil
	})
}

// write writes to the store with the current lease. Because backends and the recorder call it on
// their own goroutines, it turns a panic of the store into an error.
func (s *session) write(do func(sessionstore.Lease) error) error {
	s.leasing.RLock()
	defer s.leasing.RUnlock()
	return s.agent.tasks.Guard("session store", func() error { return do(s.lease) })
}

// takeOver stores a new activation of the session. Writes wait until it is stored and then use its
// lease, so that a turn that is still running is recorded to its end. If another process has taken
// the session over, s keeps its old lease, so that nothing it still writes is stored after what the
// other process wrote. The store decides this in the transaction of the activation.
func (s *session) takeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	again := change.Held != 0
	change.Held = cmp.Or(change.Held, s.lease.Generation)
	l, err := s.agent.options.Store.Activate(ctx, s.lease.ID, change)
	if err == nil && change.Held == s.lease.Generation {
		s.lease = l
	}
	if _, fenced := errors.AsType[*sessionstore.FencedError](err); again || !fenced {
		return l, err
	}
	change.Held = 0
	return s.agent.options.Store.Activate(ctx, s.lease.ID, change)
}

// sender is one of the methods of a session that show the client an update and record it.
type sender func(s *session, ctx context.Context, u backend.Update) error

// update shows the client an update and then records it. It does not wait for the record to be
// stored.
func (s *session) update(ctx context.Context, u backend.Update) error {
	return s.send(ctx, u, s.show, s.record.add)
}

// commit shows the client an update once that and everything before it is stored.
func (s *session) commit(ctx context.Context, u backend.Update) error {
	return s.send(ctx, u, s.record.add, s.record.flush, s.show)
}

// step is a part of showing and recording an update.
type step func(context.Context, backend.Update) error

// send takes steps to show an update and record it.
func (s *session) send(ctx context.Context, u backend.Update, steps ...step) error {
	if err := checkUpdate(u); err != nil {
		return err
	}
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	s.spending.note(ctx, u)
	if u.Kind == sessionstore.SessionInfoUpdate && s.renamed.Load() {
		var more bool
		if u, more = withoutTitle(u); !more {
			return nil
		}
	}
	for _, do := range steps {
		if err := do(ctx, u); err != nil {
			return asFenced(err)
		}
	}
	delete(s.settings, u.Kind)
	s.noteMode(u)
	if kind := kindOf(u); kind == sessionstore.ToolCall ||
		kind == sessionstore.ToolCallUpdate && s.host.permits.Configured != nil {
		said := s.noteToolCall(u)
		return cmp.Or(s.markAgain(ctx, said), s.checkAsked(ctx, said))
	}
	return nil
}

// beginUpdate waits until no other update is being shown, or ctx ends. After nil the caller must
// call endUpdate.
func (s *session) beginUpdate(ctx context.Context) error {
	select {
	case s.updates <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil { // even if there was room
		s.endUpdate()
		return context.Cause(ctx)
	}
	return nil
}

func (s *session) endUpdate() { <-s.updates }

// checkUpdate rejects an update that is not a JSON object, which a backend can build without
// ParseUpdate.
func checkUpdate(u backend.Update) error {
	if !strictjson.IsObject(u.Raw) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent sent an update that is not an object")
	}
	return nil
}

// show sends the viewers an update without recording it.
func (s *session) show(ctx context.Context, u backend.Update) error {
	return s.host.viewers.update(ctx, nil, u)
}

// showTo sends one client an update without recording it, and waits until the client has room.
func (s *session) showTo(
	ctx context.Context, to *connection, u backend.Update, when occasion,
) error {
	if to.agent != s.agent { // the backend does not know this client
		when = forAnother
	}
	return to.sendUpdate(ctx, s.address, u, when)
}

// saveState stores the backend's state. If the store rejects it, the session ends in the
// background, because ending it may wait for the caller.
func (s *session) saveState(ctx context.Context, state []byte) error {
	key := s.agent.sessions.StateKey(state)
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.SaveState(ctx, l, state, key)
	})
	s.spending.readFrom(key)
	if err != nil {
		s.agent.tasks.Go(func() { s.failed(err) })
	}
	return err
}

// checkLease returns an error if another process took the session over or deleted it.
func (s *session) checkLease(ctx context.Context) error {
	return s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.Append(ctx, l, nil)
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
	if gone(err) {
		s.evicted.Do(func() { s.evict(cause) })
	}
}

// gone reports whether err means that another process took the session over, or that it was
// deleted.
func gone(err error) bool {
	return errors.As(err, new(*sessionstore.FencedError)) ||
		errors.As(err, new(*sessionstore.NotFoundError))
}

// fencedError is an error of the store after which nothing more of a session is stored. It wraps
// backend.ErrFenced, because backends do not know the store.
type fencedError struct{ error }

func (e fencedError) Unwrap() []error { return []error{backend.ErrFenced, e.error} }

// asFenced returns err as a fencedError if it says that the session is gone.
func asFenced(err error) error {
	if gone(err) {
		return fencedError{err}
	}
	return err
}

// tellGone tells the user that the rest of the turn is not stored, because the session is gone.
func (s *session) tellGone(ctx context.Context, err error) {
	what := "Another window has opened this session. Nothing more of this turn was stored. " +
		"Load the session again to continue it here."
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		what = "This session was deleted in another window. Nothing of this turn was stored."
	}
	ctx, cancel := commitContext(ctx)
	defer cancel()
	s.host.viewers.try(ctx, nil, backend.Warning(backend.Text("\n\n"+what+"\n")))
}

// addUnended notes that the end of a turn could not be stored.
func (s *session) addUnended(number int64) {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.unended = append(s.unended, number)
}

// endOpenTurns stores the ends that could not be stored before, under the lease of the activation
// that replaces s.
func (s *session) endOpenTurns(ctx context.Context, lease sessionstore.Lease) {
	s.ending.Lock()
	unended := s.unended
	s.ending.Unlock()
	ctx, cancel := commitContext(ctx)
	defer cancel()
	for _, number := range unended {
		if err := s.agent.options.Store.EndTurn(ctx, lease, number); err != nil {
			s.agent.log.Warn("cannot end the turn", "session", s.id, "error", err)
		}
	}
}

// retire closes a session that is not the active one of its queue.
func (s *session) retire(ctx context.Context) {
	ctx, cancel := commitContext(ctx)
	defer cancel()
	if _, err := s.close(ctx, nil); err != nil {
		s.agent.log.Warn("cannot close the replaced session", "session", s.id, "error", err)
	}
}

// close frees what the session holds, once. The caller has ended its last turn. params are those of
// a session/close, or nil.
func (s *session) close(
	ctx context.Context, params backend.Raw,
) (result json.RawMessage, err error) {
	s.closed.Do(func() {
		s.host.close()
		s.spending.close(ctx)
		err = s.record.close(ctx)
		closeErr := s.agent.tasks.Guard("close", func() (err error) {
			result, err = s.closeBackend(ctx, params)
			return err
		})
		err = errors.Join(err, closeErr, s.servers.close(ctx), s.workspace.Close())
	})
	return result, err
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

// record stores a session's updates with a recorder, and with another one after the store has
// failed and works again.
type record struct {
	session  *session
	options  sessionstore.RecorderOptions
	closed   chan struct{}
	children *childLimit

	mu       sync.Mutex
	recorder *sessionstore.Recorder
}

func newRecord(s *session, o sessionstore.RecorderOptions) *record {
	r := &record{session: s, options: o, closed: make(chan struct{}),
		children: s.agent.newChildLimit()}
	r.start()
	return r
}

// start starts a recorder. The session learns at once when the store rejects a segment.
func (r *record) start() {
	recorder := sessionstore.NewRecorder(r.append, r.options)
	r.recorder = recorder
	r.session.agent.tasks.Go(func() {
		select {
		case <-recorder.Failed():
			r.session.failed(recorder.Err())
		case <-r.closed:
		}
	})
}

// current returns the current recorder.
func (r *record) current() *sessionstore.Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorder
}

// add records u.
func (r *record) add(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		if r.session.host.viewers.firstTakesNotices() {
			return nil
		}
		u = message
	}
	if !r.children.admits(u) {
		return nil
	}
	return r.current().Record(ctx, u)
}

// flush waits until u and everything before it is stored.
func (r *record) flush(ctx context.Context, _ backend.Update) error {
	return r.current().Flush(ctx)
}

// restart starts a new recorder if the current one has failed and the session is not gone. Updates
// that were not stored are lost, but their turn has failed.
func (r *record) restart(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.recorder.Err()
	if err == nil || gone(err) {
		return
	}
	select {
	case <-r.closed:
		return
	default:
	}
	_ = r.recorder.Close(ctx) // returns err again
	r.start()
}

// close stores what is left.
func (r *record) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.closed)
	return r.recorder.Close(ctx)
}

// append stores a segment, with the lease that is current now, and the latest title in it.
func (r *record) append(ctx context.Context, segment []sessionstore.Update) error {
	title := latestTitle(segment)
	store := r.session.agent.options.Store
	return r.session.write(func(lease sessionstore.Lease) error {
		err := store.Append(ctx, lease, segment)
		if err != nil || title == nil {
			return err
		}
		r.session.titled.Store(*title != "")
		return store.SetTitle(ctx, lease, *title)
	})
}
