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
	// Ask asks the client once, and makes of its answer what it means for the server. Needed. One call is running
	// at a time. What it returns with an error is dropped.
	Ask func(context.Context) (T, error)
	// Drop is called once for each value that Ask returned, when a newer one has taken its place, or the follower
	// is closed, and nothing uses it any more.
	Drop func(T)
	// Timeout is how long the client may take to answer, by the clock on the wall. Default 5 s.
	Timeout time.Duration
	// MaxAge is how old an answer may be when it is used, for clients that tell of no change. Default no limit.
	MaxAge time.Duration
}

// Follower is a server's view of one client's roots: it asks, and asks again when they have changed (M9).
// Questions never overlap, so that the newest list wins whatever the order of the answers. While one is out,
// those who need the roots wait for its answer. A question that fails closes the scope until one is
// answered (M10). It is safe for concurrent use. Close it.
type Follower[T any] struct {
	options FollowOptions[T]
	base    context.Context
	end     context.CancelCauseFunc
	asking  sync.WaitGroup

	mu      sync.Mutex
	current *held[T]      // nil if there is no valid answer
	failure error         // why there is none
	state   freshness     // of current and failure
	asked   time.Time     // when the answer came
	out     chan struct{} // closed when the question that is out was answered; nil if there is none
	again   bool          // the list changed while it was out
}

// freshness is what is known of the last answer.
type freshness int

const (
	stale freshness = iota // the client was never asked, or its list has changed since
	fresh
)

// held is a value with those that use it.
type held[T any] struct {
	value    T
	users    int
	replaced bool
}

// ErrFollowerClosed is what is left of the roots when the client is gone.
var ErrFollowerClosed = errors.New("the client is gone")

// maxRounds is how often the client is asked anew because its list changed while it answered.
const maxRounds = 100

// NewFollower makes a follower that has not asked yet.
func NewFollower[T any](o FollowOptions[T]) *Follower[T] {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Drop == nil {
		o.Drop = func(T) {}
	}
	f := &Follower[T]{options: o}
	f.base, f.end = context.WithCancelCause(context.Background())
	return f
}

// Changed says that the client's list has changed: the next use asks first. While a question is out it
// has exactly one more asked after it, however often the list changes meanwhile.
func (f *Follower[T]) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed()
}

// AskNow says the same, and asks at once, for connections on which a server may ask at any time. The values of
// ctx go with the question, its end does not end it.
func (f *Follower[T]) AskNow(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed()
	if f.out == nil {
		f.start(ctx)
	}
}

func (f *Follower[T]) changed() {
	f.state = stale
	f.again = f.out != nil
}

// Use calls use with what the newest list means, and keeps it from being dropped until use returns. It
// waits for a question that is out, and asks if the last answer is out of date or there was none. The
// error is that of Ask, the context's, or use's own.
func (f *Follower[T]) Use(ctx context.Context, use func(T) error) error {
	h, err := f.take(ctx)
	if err != nil {
		return err
	}
	defer f.release(h)
	return use(h.value)
}

// take returns the newest value, with one more user.
func (f *Follower[T]) take(ctx context.Context) (*held[T], error) {
	for asked := false; ; asked = true {
		f.mu.Lock()
		if f.out == nil && (f.state == stale || !asked && f.dated()) {
			f.start(ctx)
		}
		if f.out == nil {
			defer f.mu.Unlock()
			if f.failure != nil {
				return nil, f.failure
			}
			if f.current == nil {
				return nil, ErrFollowerClosed
			}
			f.current.users++
			return f.current, nil
		}
		answered := f.out
		f.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// dated reports whether the last answer, which may have been none, is to be asked for anew where nobody just has.
func (f *Follower[T]) dated() bool {
	return f.failure != nil || f.options.MaxAge > 0 && time.Since(f.asked) > f.options.MaxAge
}

// start asks, unless the follower is closed. The values of ctx go with the question.
func (f *Follower[T]) start(ctx context.Context) {
	if f.base.Err() != nil {
		return
	}
	f.out, f.again = make(chan struct{}), false
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(f.base, func() { cancel(context.Cause(f.base)) })
	f.asking.Go(func() {
		defer cancel(nil)
		defer stop()
		for round := 1; !f.ask(ctx, round); round++ {
		}
	})
}

// ask asks once. It reports whether that was the last time: the list did not change meanwhile.
func (f *Follower[T]) ask(ctx context.Context, round int) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, f.options.Timeout,
		fmt.Errorf("the client did not list its roots within %s", f.options.Timeout))
	defer cancel()
	value, err := f.options.Ask(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.base.Err() != nil:
		f.dropUnused(value, err)
		err = ErrFollowerClosed
		f.replace(nil, err)
	case f.again && round < maxRounds:
		f.again = false
		f.dropUnused(value, err)
		return false
	case f.again:
		f.dropUnused(value, err)
		f.replace(nil, fmt.Errorf("the client's roots changed %d times while it was asked for them", round))
	case err != nil:
		f.replace(nil, err)
	default:
		f.replace(&held[T]{value: value}, nil)
	}
	close(f.out)
	f.out = nil
	return true
}

// dropUnused drops an answer that nobody will use.
func (f *Follower[T]) dropUnused(value T, err error) {
	if err == nil {
		f.options.Drop(value)
	}
}

// replace puts an answer in the place of the one before, whose users go on with it.
func (f *Follower[T]) replace(h *held[T], failure error) {
	if old := f.current; old != nil {
		old.replaced = true
		if old.users == 0 {
			f.options.Drop(old.value)
		}
	}
	f.current, f.failure, f.state, f.asked = h, failure, fresh, time.Now()
}

func (f *Follower[T]) release(h *held[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.users--
	if h.replaced && h.users == 0 {
		f.options.Drop(h.value)
	}
}

// Gone ends a question that is out: its client will not answer. What is known stays in use.
func (f *Follower[T]) Gone() { f.end(ErrFollowerClosed) }

// Close ends a question that is out, waits for it, and drops what nothing uses any more.
func (f *Follower[T]) Close() {
	f.Gone()
	f.asking.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(nil, ErrFollowerClosed)
}
