package sessionstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Defaults of [RecorderOptions].
const (
	DefaultInterval     = 100 * time.Millisecond
	DefaultSegmentBytes = 64 << 10
	DefaultQueueBytes   = 256 << 10
)

// RecorderOptions are the bounds of a Recorder; zero means the default.
type RecorderOptions struct {
	// Interval is the longest that an update waits for others before its segment is committed.
	Interval time.Duration
	// SegmentBytes commits a segment early once its updates are this long.
	SegmentBytes int
	// QueueBytes is how long the updates may be that wait for the store, before Record blocks.
	QueueBytes int
}

func (o RecorderOptions) withDefaults() RecorderOptions {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	return o
}

// Recorder takes a running session's updates as they come and appends them to the store in
// segments, beside their way to the wire (clause W11). It is safe for concurrent use. One goroutine
// commits; Close ends it.
//
// The first error of the store ends recording: it is returned by every call from then on, and
// Failed tells at once, so that the turn can end with it.
type Recorder struct {
	store   Store
	lease   Lease
	options RecorderOptions

	wake   chan struct{} // tells the goroutine that something may be due
	failed chan struct{}
	done   chan struct{} // closed by the goroutine
	stop   context.CancelFunc

	mu        sync.Mutex
	queue     []Update
	bytes     int       // of queue
	since     time.Time // when the first of queue came
	taken     int64     // updates that left the queue
	committed int64     // updates that are settled
	flushed   int64     // updates that a Flush waits for
	progress  chan struct{}
	closing   bool
	err       error
}

// NewRecorder starts a Recorder of the leased session. The caller closes it.
func NewRecorder(store Store, lease Lease, options RecorderOptions) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{
		store: store, lease: lease, options: options.withDefaults(),
		wake: make(chan struct{}, 1), failed: make(chan struct{}), done: make(chan struct{}), stop: stop,
		progress: make(chan struct{}),
	}
	go r.run(ctx)
	return r
}

// Record takes u, which must not be modified afterwards. It returns before u is stored, and blocks
// only while QueueBytes wait for the store.
func (r *Recorder) Record(ctx context.Context, u Update) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.await(ctx, func() bool { return r.closing || r.bytes < r.options.QueueBytes }); err != nil {
		return err
	}
	if r.closing {
		return ErrClosed
	}
	if len(r.queue) == 0 {
		r.since = time.Now()
	}
	r.queue = append(r.queue, u)
	r.bytes += len(u.Raw)
	if len(r.queue) == 1 || r.bytes >= r.options.SegmentBytes {
		r.rouse()
	}
	return nil
}

// Flush returns once everything that was recorded before it is committed.
func (r *Recorder) Flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	target := r.taken + int64(len(r.queue))
	r.flushed = max(r.flushed, target)
	r.rouse()
	return r.await(ctx, func() bool { return r.committed >= target })
}

// Failed is closed when the store refused a segment. Err says why.
func (r *Recorder) Failed() <-chan struct{} { return r.failed }

// Err returns the store's refusal, nil if there was none.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close commits what was recorded and waits for the goroutine. If ctx ends first, what was not
// committed is given up. It returns the store's refusal or ctx's cause. Record fails
// with [ErrClosed] from then on.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closing = true
	r.announce()
	r.rouse()
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

// await waits, without the lock, until ready; under the lock before and after. It ends early with the
// store's refusal or ctx's cause.
func (r *Recorder) await(ctx context.Context, ready func() bool) error {
	for {
		if r.err != nil {
			return r.err
		}
		if ready() {
			return nil
		}
		progress := r.progress
		r.mu.Unlock()
		var ended error
		select {
		case <-progress:
		case <-ctx.Done():
			ended = context.Cause(ctx)
		}
		r.mu.Lock()
		if ended != nil {
			return ended
		}
	}
}

// announce wakes all that await. The lock is held.
func (r *Recorder) announce() {
	close(r.progress)
	r.progress = make(chan struct{})
}

// rouse makes the goroutine look again.
func (r *Recorder) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	for {
		batch, ok := r.next()
		if !ok {
			return
		}
		r.settle(len(batch), r.store.Append(ctx, r.lease, segment(batch)))
	}
}

// next waits for a segment that is due and takes it from the queue; false at the end.
func (r *Recorder) next() ([]Update, bool) {
	timer := time.NewTimer(r.options.Interval)
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		wait := r.options.Interval
		if len(r.queue) > 0 {
			wait = time.Until(r.since.Add(r.options.Interval))
		}
		switch {
		case len(r.queue) > 0 && (wait <= 0 || r.urgent()):
			return r.take(), true
		case r.closing && len(r.queue) == 0:
			return nil, false
		}
		timer.Reset(wait)
		due := timer.C
		if len(r.queue) == 0 {
			due = nil
		}
		r.mu.Unlock()
		select {
		case <-r.wake:
		case <-due:
		}
		r.mu.Lock()
	}
}

// urgent reports whether the queue's first segment need not wait for its interval.
func (r *Recorder) urgent() bool {
	return r.closing || r.flushed > r.taken || r.bytes >= r.options.SegmentBytes
}

// take removes a segment's worth from the queue: at least one update.
func (r *Recorder) take() []Update {
	n, size := 0, 0
	for n < len(r.queue) && size < r.options.SegmentBytes {
		size += len(r.queue[n].Raw)
		n++
	}
	batch := slices.Clone(r.queue[:n])
	r.queue = slices.Delete(r.queue, 0, n)
	r.bytes -= size
	r.taken += int64(n)
	r.announce() // there is room
	return batch
}

// settle notes that n updates were committed, or that recording is over.
func (r *Recorder) settle(n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committed += int64(n)
	if err != nil && r.err == nil {
		r.err = err
		r.queue, r.bytes = nil, 0
		close(r.failed)
	}
	r.announce()
}

// segment returns what is stored of batch: its events with their chunks joined, then its states, so that a state does not separate
// two chunks.
func segment(batch []Update) []Update {
	var history, states []Update
	for _, u := range batch {
		if u.Kind.IsState() {
			states = append(states, u)
		} else {
			history = append(history, u)
		}
	}
	return append(joinedSlice(history), states...)
}
