package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// follower is a server's view of one client's roots. It asks for them, and asks again when they
// have changed. Requests never overlap, so the newest list wins. While a request is pending, users
// of the roots wait for the answer. After a failed request there are no roots until another request
// succeeds. It is safe for concurrent use. The owner must close it.
type follower struct {
	// ask asks the client for its roots and opens them. Calls do not overlap. A scope returned with
	// an error is ignored.
	ask func(context.Context) (*scope, error)
	// drop is called once for each scope from ask, when it is no longer in use and has been
	// replaced, or the follower was closed.
	drop    func(*scope)
	timeout time.Duration // for the client to answer
	maxAge  time.Duration // for which an answer is used, or 0; some clients announce no changes
	base    context.Context
	end     context.CancelCauseFunc
	asking  sync.WaitGroup

	mu       sync.Mutex
	current  *shared       // nil if there is no valid answer
	err      error         // why there is none
	stale    bool          // whether the client was never asked, or its list has changed since
	answered time.Time     // when the last answer arrived
	pending  chan struct{} // closed when the pending request is answered; nil if there is none
	again    bool          // whether the list changed during the pending request
	silent   bool          // whether the client has not answered in time, and nothing since
}

// shared is a scope with the number of its users.
type shared struct {
	*scope
	users    int
	replaced bool
}

// errDisconnected is returned by a follower whose client has disconnected.
var errDisconnected = errors.New("the client has disconnected")

// maxRepeats is how often the client is asked again because its list has changed during its answer.
const maxRepeats = 100

// newFollower returns a follower that has not asked yet.
func newFollower(
	ask func(context.Context) (*scope, error), timeout, maxAge time.Duration,
) *follower {
	f := &follower{ask: ask, drop: (*scope).close, timeout: timeout, maxAge: maxAge, stale: true}
	f.base, f.end = context.WithCancelCause(context.Background())
	return f
}

// changed records that the client's list has changed: the next use asks first. During a pending
// request it causes exactly one more, however often it is called.
func (f *follower) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setStale()
}

// askNow is changed, but asks at once, for connections on which a server may send requests at any
// time. The request has the values of ctx but does not end with it.
func (f *follower) askNow(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setStale()
	if f.pending == nil {
		f.start(ctx)
	}
}

func (f *follower) setStale() {
	f.stale, f.silent = true, false
	f.again = f.pending != nil
}

// use calls do with the scope of the newest list, which is not dropped until use returns. It waits
// for a pending request, and asks if the last answer is out of date or failed. The error is from
// ask, ctx or do. Nobody waits again for a client that has not answered in time: it is asked in the
// background, until it answers or announces a change.
func (f *follower) use(ctx context.Context, do func(*scope) error) error {
	h, err := f.acquire(ctx)
	if err != nil {
		return err
	}
	defer f.release(h)
	return do(h.scope)
}

// acquire returns the newest scope and counts one more user.
func (f *follower) acquire(ctx context.Context) (*shared, error) {
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
func (f *follower) expired() bool {
	return f.err != nil || f.maxAge > 0 && time.Since(f.answered) > f.maxAge
}

// start sends a request, unless the follower is closed. The caller holds mu.
func (f *follower) start(ctx context.Context) {
	if f.base.Err() != nil {
		return
	}
	f.pending, f.again = make(chan struct{}), false
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(f.base, func() { cancel(context.Cause(f.base)) })
	f.asking.Go(func() {
		defer cancel(nil)
		defer stop()
		for round := 1; !f.askOnce(ctx, round); round++ {
		}
	})
}

// askOnce asks once, and reports whether it was the last time, because the list has not changed in
// the meantime.
func (f *follower) askOnce(ctx context.Context, round int) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout,
		fmt.Errorf("the client did not list its roots within %s", f.timeout))
	defer cancel()
	value, err := f.ask(ctx)
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
		f.replace(&shared{scope: value}, nil)
	}
	close(f.pending)
	f.pending = nil
	return true
}

// discard drops an answer that will not be used.
func (f *follower) discard(value *scope, err error) {
	if err == nil {
		f.drop(value)
	}
}

// replace replaces the last answer, whose users keep it until they are done. The caller holds mu.
func (f *follower) replace(h *shared, err error) {
	if old := f.current; old != nil {
		old.replaced = true
		if old.users == 0 {
			f.drop(old.scope)
		}
	}
	f.current, f.err, f.stale, f.answered = h, err, false, time.Now()
}

func (f *follower) release(h *shared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.users--
	if h.replaced && h.users == 0 {
		f.drop(h.scope)
	}
}

// disconnect ends a pending request, because the client will not answer. The last answer stays in
// use.
func (f *follower) disconnect() { f.end(errDisconnected) }

// close ends a pending request, waits for it, and drops the last answer once it is no longer in
// use.
func (f *follower) close() {
	f.disconnect()
	f.asking.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(nil, errDisconnected)
}
