// Package record stores what is said in a session, and finds the end of what is stored in a history
// that an agent replays.
package record

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Options configure a [Record].
type Options struct {
	Store sessionstore.Store
	Lease sessionstore.Lease // under which the session was stored
	// Append stores a segment.
	Append func(ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update) error
	// Failed is called with the error of a segment that could not be stored.
	Failed   func(error)
	Recorder sessionstore.RecorderOptions
	Children *ChildLimit
	Tasks    *tasks.Group
}

// Record stores a session's updates with a recorder, and with another one after the store has
// failed and works again. It has the session's lease. It is safe for concurrent use.
type Record struct {
	options Options
	ended   chan struct{}

	leasing sync.RWMutex // held for reading by writes, for writing while the lease changes
	lease   sessionstore.Lease

	mu       sync.Mutex
	recorder *sessionstore.Recorder
	closed   bool
}

// New returns a record to which nothing was added.
func New(o Options) *Record {
	r := &Record{options: o, lease: o.Lease, ended: make(chan struct{})}
	r.startLocked()
	return r
}

// startLocked starts a recorder.
func (r *Record) startLocked() {
	o := r.options
	recorder := sessionstore.NewRecorder(
		func(ctx context.Context, segment []sessionstore.Update) error {
			return r.Write(func(l sessionstore.Lease) error { return o.Append(ctx, l, segment) })
		}, o.Recorder)
	r.recorder = recorder
	o.Tasks.Go(func() {
		select {
		case <-recorder.Failed():
			o.Failed(recorder.Err())
		case <-r.ended:
		}
	})
}

// current returns the current recorder.
func (r *Record) current() *sessionstore.Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorder
}

// Add records u. It does not wait until that is stored.
func (r *Record) Add(ctx context.Context, u sessionstore.Update) error {
	if !r.options.Children.Admits(u) {
		return nil
	}
	return tasks.Insist(ctx, func(ctx context.Context) error { return r.current().Record(ctx, u) })
}

// Flush waits until everything is stored that was added.
func (r *Record) Flush(ctx context.Context) error { return r.current().Flush(ctx) }

// Restart starts a new recorder if the current one has failed and the session is not gone. Updates
// that were not stored are lost, but their turn has failed.
func (r *Record) Restart(ctx context.Context) {
	failed := r.current()
	err := failed.Err()
	if err == nil || Gone(err) {
		return
	}
	_ = failed.Close(ctx) // returns err again
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recorder == failed && !r.closed {
		r.startLocked()
	}
}

// Close stores what is left. It is called once.
func (r *Record) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	close(r.ended)
	recorder := r.recorder
	r.mu.Unlock()
	return recorder.Close(ctx)
}
