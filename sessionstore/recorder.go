package sessionstore

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// RecorderOptions configure a Recorder.
type RecorderOptions struct {
	// Interval is the maximum time that an update waits for others before its segment is stored; 0
	// means 100 ms.
	Interval time.Duration
	// SegmentBytes is the size of the waiting updates at which a segment is stored early; 0 means
	// 64 KiB.
	SegmentBytes int
	// QueueBytes is the size of the waiting updates at which Record blocks; 0 means 256 KiB.
	QueueBytes int
}

// AppendFunc stores a segment of updates, for example with [Histories.Append] and a lease.
type AppendFunc func(ctx context.Context, segment []Update) error

// Recorder stores a session's updates in segments. It does not delay sending them to
// the client. It is safe for concurrent use. One goroutine stores the segments until Close.
//
// The first error of the store ends recording. Every call returns it from then on, and Failed
// reports it at once.
type Recorder struct {
	store   AppendFunc
	options RecorderOptions
	failed  chan struct{}
	done    chan struct{} // closed by the goroutine
	stop    context.CancelFunc

	mu      sync.Mutex
	changed *sync.Cond // something that the goroutine or a call waits for
	queue   []Update
	bytes   int       // size of queue
	since   time.Time // when the first of queue was recorded
	taken   int64     // number of updates that left the queue
	stored  int64     // number of updates that were stored
	flushTo int64     // number of updates that a Flush waits for
	closing bool
	err     error
}

// NewRecorder starts a Recorder, which the caller must close.
func NewRecorder(store AppendFunc, o RecorderOptions) *Recorder {
	o.Interval = cmp.Or(o.Interval, 100*time.Millisecond)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<10)
	o.QueueBytes = cmp.Or(o.QueueBytes, 256<<10)
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{store: store, options: o,
		failed: make(chan struct{}), done: make(chan struct{}), stop: stop}
	r.changed = sync.NewCond(&r.mu)
	go r.run(ctx)
	return r
}

// Record queues u, which must not be modified afterwards. It returns before u is stored, and blocks
// only while the queue is full.
func (r *Recorder) Record(ctx context.Context, u Update) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.awaitLocked(ctx, func() bool { return r.closing || r.bytes < r.options.QueueBytes })
	if err != nil {
		return err
	}
	if r.closing {
		return ErrClosed
	}
	if len(r.queue) == 0 {
		r.since = time.Now()
		time.AfterFunc(r.options.Interval, r.wake)
	}
	r.queue = append(r.queue, u)
	r.bytes += len(u.Raw)
	if r.bytes >= r.options.SegmentBytes {
		r.changed.Broadcast()
	}
	return nil
}

// Flush waits until everything that was recorded before is stored.
func (r *Recorder) Flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	target := r.taken + int64(len(r.queue))
	r.flushTo = max(r.flushTo, target)
	r.changed.Broadcast()
	return r.awaitLocked(ctx, func() bool { return r.stored >= target })
}

// Failed returns a channel that is closed when the store has failed. Err returns the error.
func (r *Recorder) Failed() <-chan struct{} { return r.failed }

// Err returns the error of the store, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close stores the queued updates and stops the goroutine. If ctx ends first, it drops the updates
// that are not stored. It returns the error of the store or the cause of ctx. Record returns
// [ErrClosed] from then on.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closing = true
	r.changed.Broadcast()
	r.mu.Unlock()
	defer r.stop()
	select {
	case <-r.done:
		return r.Err()
	case <-ctx.Done():
		r.stop()
		<-r.done
		return context.Cause(ctx)
	}
}

// awaitLocked waits until ready returns true, the store fails, or ctx ends. It releases the lock
// while it waits.
func (r *Recorder) awaitLocked(ctx context.Context, ready func() bool) error {
	for r.err == nil && !ready() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stop := context.AfterFunc(ctx, r.wake)
		r.changed.Wait()
		stop()
	}
	return r.err
}

// wake makes all that wait look again. The lock keeps them from having looked but not waited yet.
func (r *Recorder) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}

// run stores each segment that is due, until the recorder is closed and the queue empty.
func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 || !r.closing {
		if !r.isDueLocked() {
			r.changed.Wait()
			continue
		}
		batch := r.takeLocked()
		r.mu.Unlock()
		err := r.store(ctx, segment(batch))
		r.mu.Lock()
		r.stored += int64(len(batch))
		if err != nil && r.err == nil {
			r.err = err
			r.queue, r.bytes = nil, 0
			close(r.failed)
		}
		r.changed.Broadcast()
	}
}

// isDueLocked reports whether there is a segment to store now.
func (r *Recorder) isDueLocked() bool {
	return len(r.queue) > 0 && (r.closing || r.flushTo > r.taken ||
		r.bytes >= r.options.SegmentBytes || time.Since(r.since) >= r.options.Interval)
}

// takeLocked removes the updates of a segment, at least one, from the queue.
func (r *Recorder) takeLocked() []Update {
	n, size := 0, 0
	for n < len(r.queue) && size < r.options.SegmentBytes {
		size += len(r.queue[n].Raw)
		n++
	}
	batch := slices.Clone(r.queue[:n])
	r.queue = slices.Delete(r.queue, 0, n)
	r.bytes -= size
	r.taken += int64(n)
	r.changed.Broadcast()
	return batch
}

// segment returns batch as it is stored: the events, with their chunks joined, and then the others,
// so that no state separates two chunks.
func segment(batch []Update) (all []Update) {
	history := func(yield func(Update, error) bool) {
		for _, u := range batch {
			if !yield(u, nil) {
				return
			}
		}
	}
	for u := range joined(history, len(batch), maxRecordedBytes) {
		all = append(all, u)
	}
	for _, u := range batch {
		if !u.isEvent() {
			all = append(all, u)
		}
	}
	return all
}
