package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// record stores a session's updates with a recorder, and with another one after the store has
// failed and works again.
type record struct {
	session  *session
	closed   chan struct{}
	children *childLimit
	recorder *sessionstore.Recorder // guarded by the state of the session
}

func newRecord(s *session) *record {
	r := &record{session: s, closed: make(chan struct{}), children: s.agent.newChildLimit()}
	s.withState(r.startLocked)
	return r
}

// startLocked starts a recorder. The session learns at once when the store rejects a segment.
func (r *record) startLocked() {
	recorder := sessionstore.NewRecorder(r.append, r.session.agent.options.tuning.Recorder)
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
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	return r.recorder
}

// add records u.
func (r *record) add(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		if r.session.viewers.firstTakesNotices() {
			return nil
		}
		u = message
	}
	if !r.children.admits(u) {
		return nil
	}
	return insist(ctx, func(ctx context.Context) error { return r.current().Record(ctx, u) })
}

// restart starts a new recorder if the current one has failed and the session is not gone. Updates
// that were not stored are lost, but their turn has failed.
func (r *record) restart(ctx context.Context) {
	failed := r.current()
	err := failed.Err()
	if err == nil || gone(err) {
		return
	}
	_ = failed.Close(ctx) // returns err again
	r.session.withState(func() {
		if r.recorder == failed && r.session.phase < isClosed {
			r.startLocked()
		}
	})
}

// close stores what is left. The session is in the phase isClosed.
func (r *record) close(ctx context.Context) error {
	close(r.closed)
	return r.current().Close(ctx)
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
