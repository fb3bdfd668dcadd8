// Package record stores what is said in a session.
package record

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Options configure a [Record].
type Options struct {
	Store interface {
		sessionstore.Sessions
		sessionstore.Histories
	}
	Lease sessionstore.Lease // under which the session was stored
	// Failed is called with the error of a segment that could not be stored, and returns before
	// another recorder is started.
	Failed    func(error)
	Recorder  sessionstore.RecorderOptions
	Subagents *SubagentLimit
	Tasks     *tasks.Group
}

// Record stores a session's updates with a recorder, and with another one after the store has
// failed and works again. It has the session's lease. It is safe for concurrent use.
type Record struct {
	options Options
	open    context.Context // ends with Close
	end     context.CancelFunc

	leasing sync.RWMutex // held for reading by writes, for writing while the lease changes
	lease   sessionstore.Lease

	mu       sync.Mutex
	recorder *sessionstore.Recorder
	reported chan struct{} // closed when nothing more is reported of the recorder
}

// New returns a record to which nothing was added.
func New(o Options) *Record {
	r := &Record{options: o, lease: o.Lease}
	r.open, r.end = context.WithCancel(context.Background())
	r.startLocked()
	return r
}

// startLocked starts a recorder.
func (r *Record) startLocked() {
	o := r.options
	recorder := sessionstore.NewRecorder(
		func(ctx context.Context, segment []sessionstore.Update) error {
			return r.Write(func(l sessionstore.Lease) error { return r.store(ctx, l, segment) })
		}, o.Recorder)
	reported := make(chan struct{})
	r.recorder, r.reported = recorder, reported
	o.Tasks.Go(func() {
		defer close(reported)
		select {
		case <-recorder.Failed():
			o.Failed(recorder.Err())
		case <-r.open.Done():
		}
	})
}

// store stores a segment, and the latest title in it.
func (r *Record) store(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	err := r.options.Store.Append(ctx, l, segment)
	if title := LatestTitle(segment); err == nil && title != nil {
		err = r.options.Store.SetTitle(ctx, l, *title)
	}
	return err
}

// LatestTitle returns the title that the last of the updates sets that changes it, "" if it removes
// the title, and nil if none does.
func LatestTitle(updates []sessionstore.Update) *string {
	for _, u := range slices.Backward(updates) {
		if u.Kind != sessionstore.SessionInfoUpdate {
			continue
		}
		if title := strictjson.Find(u.Body(), "title"); title != nil {
			// Anything but a text removes it.
			return new(listing.TitleLine(strictjson.FindText(title)))
		}
	}
	return nil
}

// current returns the current recorder.
func (r *Record) current() *sessionstore.Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorder
}

// Add records u. It does not wait until that is stored.
func (r *Record) Add(ctx context.Context, u sessionstore.Update) error {
	if !r.options.Subagents.Admits(u) {
		return nil
	}
	return tasks.Insist(ctx, func(ctx context.Context) error { return r.current().Record(ctx, u) })
}

// Flush waits until everything is stored that was added.
func (r *Record) Flush(ctx context.Context) error { return r.current().Flush(ctx) }

// Restart starts a new recorder if the current one has failed and the session is not gone. Updates
// that were not stored are lost, but their turn has failed.
func (r *Record) Restart(ctx context.Context) {
	r.mu.Lock()
	failed, reported := r.recorder, r.reported
	r.mu.Unlock()
	err := failed.Err()
	if err == nil || Gone(err) {
		return
	}
	_ = failed.Close(ctx) // returns err again
	<-reported            // otherwise it would end a turn that begins later
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recorder == failed && r.open.Err() == nil {
		r.startLocked()
	}
}

// Close stores what is left. It is called once.
func (r *Record) Close(ctx context.Context) error {
	r.mu.Lock()
	r.end()
	recorder := r.recorder
	r.mu.Unlock()
	return recorder.Close(ctx)
}

// Gone reports whether an error of the store means that another process took the session over, or
// that it was deleted, so that nothing more of it can be stored.
func Gone(err error) bool {
	return errors.As(err, new(*sessionstore.FencedError)) ||
		errors.As(err, new(*sessionstore.NotFoundError))
}

// AsFenced returns err as a [backend.ErrFenced], too, if the session is gone, because backends do
// not know the store.
func AsFenced(err error) error {
	if Gone(err) {
		return fencedError{err}
	}
	return err
}

// fencedError is an error that is also a [backend.ErrFenced].
type fencedError struct{ error }

func (e fencedError) Unwrap() []error { return []error{e.error, backend.ErrFenced} }

// Write writes to the store with the current lease. Because backends and the recorder call it on
// their own goroutines, it turns a panic of the store into an error.
func (r *Record) Write(do func(sessionstore.Lease) error) error {
	r.leasing.RLock()
	defer r.leasing.RUnlock()
	return r.options.Tasks.Guard("session store", func() error { return do(r.lease) })
}

// Check returns an error if the session is gone.
func (r *Record) Check(ctx context.Context) error {
	return r.Write(func(l sessionstore.Lease) error { return r.options.Store.Append(ctx, l, nil) })
}

// TakeOver stores a new activation of the session. Writes wait until it is stored and then use its
// lease, so that a turn that is still running is recorded to its end. If another process has taken
// the session over, the record keeps its old lease, so that nothing that is still written is stored
// after what the other process wrote. The store decides this in the transaction of the activation.
func (r *Record) TakeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	r.leasing.Lock()
	defer r.leasing.Unlock()
	store, again := r.options.Store, change.Held != 0
	change.Held = cmp.Or(change.Held, r.lease.Generation)
	l, err := store.Activate(ctx, r.lease.ID, change)
	if err == nil && change.Held == r.lease.Generation {
		r.lease = l
	}
	if _, fenced := errors.AsType[*sessionstore.FencedError](err); again || !fenced {
		return l, err
	}
	change.Held = 0
	return store.Activate(ctx, r.lease.ID, change)
}

// SubagentLimit limits how much is recorded of what the subagents of a session say. Unlike the
// updates of a turn, theirs may go on without an end.
type SubagentLimit struct {
	left atomic.Int64 // bytes
	log  *slog.Logger
}

// NewSubagentLimit returns a limit in bytes.
func NewSubagentLimit(bytes int64, log *slog.Logger) *SubagentLimit {
	l := &SubagentLimit{log: log}
	l.left.Store(bytes)
	return l
}

// Admits reports whether u is recorded.
func (l *SubagentLimit) Admits(u sessionstore.Update) bool {
	if u.Kind != sessionstore.SubagentEvent {
		return true
	}
	size := int64(len(u.Raw))
	left := l.left.Add(-size)
	if left < 0 && left+size >= 0 {
		l.log.Warn("the subagents of a session say too much: the rest is shown but not stored")
	}
	return left >= 0
}
