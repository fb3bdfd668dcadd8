package acp

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// record is what stores a session's updates: a recorder, and another one when the store can be used again after it
// could not.
type record struct {
	session *session
	options sessionstore.RecorderOptions
	closed  chan struct{}

	mu  sync.Mutex
	now *sessionstore.Recorder
}

// newRecord starts the record of a session, which closes it.
func newRecord(s *session, o sessionstore.RecorderOptions) *record {
	r := &record{session: s, options: o, closed: make(chan struct{})}
	r.begin()
	return r
}

// begin starts a recorder, and watches it: when the store refuses a segment the session hears of it at once.
func (r *record) begin() {
	recorder := sessionstore.NewRecorder(leased{Store: r.session.agent.options.Store, session: r.session}, sessionstore.Lease{}, r.options)
	r.now = recorder
	r.session.agent.running.Go(func() {
		select {
		case <-recorder.Failed():
			r.session.failed(recorder.Err())
		case <-r.closed:
		}
	})
}

// recorder is the one that records now.
func (r *record) recorder() *sessionstore.Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// renew begins anew if the store refused something, for any other reason than that the session is gone. What was lost is
// lost: the turn in which it was said has failed.
func (r *record) renew(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.now.Err()
	if err == nil || gone(err) {
		return
	}
	select {
	case <-r.closed:
		return
	default:
	}
	_ = r.now.Close(ctx) // which says the same
	r.begin()
}

// close stores what is left.
func (r *record) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.closed)
	return r.now.Close(ctx)
}

// leased is the store as a session's recorder sees it: it appends with the lease that is current when it does.
type leased struct {
	sessionstore.Store
	session *session
}

// Append implements [sessionstore.Store]. The latest title in the segment is stored too.
func (l leased) Append(ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update) error {
	var title *string
	for _, u := range segment {
		if t := titleIn(u); t != nil {
			title = t
		}
	}
	return l.session.write(func(current sessionstore.Lease) error {
		err := l.Store.Append(ctx, current, segment)
		if err != nil || title == nil {
			return err
		}
		l.session.titled.Store(*title != "")
		return l.Store.SetTitle(ctx, current, *title)
	})
}
