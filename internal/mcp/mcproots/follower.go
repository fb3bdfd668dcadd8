package mcproots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// FollowOptions configure a [Follower].
type FollowOptions[T any] struct {
	// Ask asks the client for its roots and converts them to a value for the server. It is
	// required. Calls do not overlap. A value returned with an error is ignored.
	Ask func(context.Context) (T, error)
	// Drop is called once for each value that Ask returned, when the value is no longer in use and
	// has been replaced, or the follower was closed.
	Drop func(T)
	// Timeout is how long the client may take to answer. Default 5 s.
	Timeout time.Duration
	// MaxAge is how long an answer is used, for clients that do not announce changes. Default no
	// limit.
	MaxAge time.Duration
}

// Follower is a server's view of one client's roots. It asks for them, and asks again when they
// have changed. Requests never overlap, so the newest list wins. While a request is pending, users
// of the roots wait for the answer. After a failed request there are no roots until another request
// succeeds. It is safe for concurrent use. The owner must close it.
type Follower[T any] struct {
	options FollowOptions[T]
	base    context.Context
	end     context.CancelCauseFunc
	asking  sync.WaitGroup

	mu       sync.Mutex
	current  *shared[T]    // nil if there is no valid answer
	err      error         // why there is none
	stale    bool          // whether the client was never asked, or its list has changed since
	answered time.Time     // when the last answer arrived
	pending  chan struct{} // closed when the pending request is answered; nil if there is none
	again    bool          // whether the list changed during the pending request
	silent   bool          // whether the client has not answered in time, and nothing since
}

// shared is a value with the number of its users.
type shared[T any] struct {
	value    T
	users    int
	replaced bool
}

// errDisconnected is returned by a follower whose client has disconnected.
var errDisconnected = errors.New("the client has disconnected")

// maxRepeats is how often the client is asked again because its list has changed during its answer.
const maxRepeats = 100

// NewFollower returns a follower that has not asked yet.
func NewFollower[T any](o FollowOptions[T]) *Follower[T] {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Drop == nil {
		o.Drop = func(T) {}
	}
	f := &Follower[T]{options: o, stale: true}
	f.base, f.end = context.WithCancelCause(context.Background())
	return f
}

// Changed records that the client's list has changed: the next use asks first. During a pending
// request it causes exactly one more, however often it is called.
func (f *Follower[T]) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed()
}

// AskNow is Changed, but asks at once, for connections on which a server may send requests at any
// time. The request has the values of ctx but does not end with it.
func (f *Follower[T]) AskNow(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed()
	if f.pending == nil {
		f.start(ctx)
	}
}

func (f *Follower[T]) changed() {
	f.stale, f.silent = true, false
	f.again = f.pending != nil
}

// Use calls use with the value for the newest list, which is not dropped until use returns. It
// waits for a pending request, and asks if the last answer is out of date or failed. The error is
// from Ask, ctx or use. Nobody waits again for a client that has not answered in time: it is asked
// in the background, until it answers or announces a change.
func (f *Follower[T]) Use(ctx context.Context, use func(T) error) error {
	h, err := f.acquire(ctx)
	if err != nil {
		return err
	}
	defer f.release(h)
	return use(h.value)
}

// acquire returns the newest value and counts one more user.
func (f *Follower[T]) acquire(ctx context.Context) (*shared[T], error) {
	for asked := false; ; asked = true {
		f.mu.Lock()
		if f.pending == nil && (f.stale || !asked && f.expired()) {
			f.start(ctx)
		}
		if f.pending == nil || f.silent && f.err != nil {
			defer f.mu.Unlock()
			if f.err != nil {
				return nil, f.err
			}
			if f.current == nil {
				return nil, errDisconnected
			}
			f.current.users++
			return f.current, nil
		}
		answered := f.pending
		f.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// expired reports whether the last answer is too old or failed.
func (f *Follower[T]) expired() bool {
	return f.err != nil || f.options.MaxAge > 0 && time.Since(f.answered) > f.options.MaxAge
}

// start sends a request, unless the follower is closed. The caller holds mu.
func (f *Follower[T]) start(ctx context.Context) {
	if f.base.Err() != nil {
		return
	}
	f.pending, f.again = make(chan struct{}), false
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(f.base, func() { cancel(context.Cause(f.base)) })
	f.asking.Go(func() {
		defer cancel(nil)
		defer stop()
		for round := 1; !f.ask(ctx, round); round++ {
		}
	})
}

// ask asks once, and reports whether it was the last time, because the list has not changed in the
// meantime.
func (f *Follower[T]) ask(ctx context.Context, round int) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, f.options.Timeout,
		fmt.Errorf("the client did not list its roots within %s", f.options.Timeout))
	defer cancel()
	value, err := f.options.Ask(ctx)
	late := err != nil && ctx.Err() != nil
	if late {
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = err != nil && (f.silent || late)
	switch {
	case f.base.Err() != nil:
		f.discard(value, err)
		f.replace(nil, errDisconnected)
	case f.again && round < maxRepeats:
		f.again = false
		f.discard(value, err)
		return false
	case f.again:
		f.discard(value, err)
		f.replace(nil, fmt.Errorf("the client's roots changed %d times while it listed them",
			round))
	case err != nil:
		f.replace(nil, err)
	default:
		f.replace(&shared[T]{value: value}, nil)
	}
	close(f.pending)
	f.pending = nil
	return true
}

// discard drops an answer that will not be used.
func (f *Follower[T]) discard(value T, err error) {
	if err == nil {
		f.options.Drop(value)
	}
}

// replace replaces the last answer, whose users keep it until they are done. The caller holds mu.
func (f *Follower[T]) replace(h *shared[T], err error) {
	if old := f.current; old != nil {
		old.replaced = true
		if old.users == 0 {
			f.options.Drop(old.value)
		}
	}
	f.current, f.err, f.stale, f.answered = h, err, false, time.Now()
}

func (f *Follower[T]) release(h *shared[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.users--
	if h.replaced && h.users == 0 {
		f.options.Drop(h.value)
	}
}

// Disconnect ends a pending request, because the client will not answer. The last answer stays in
// use.
func (f *Follower[T]) Disconnect() { f.end(errDisconnected) }

// Close ends a pending request, waits for it, and drops the last answer once it is no longer in
// use.
func (f *Follower[T]) Close() {
	f.Disconnect()
	f.asking.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(nil, errDisconnected)
}
