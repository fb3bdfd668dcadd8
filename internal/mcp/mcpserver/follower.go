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
	running sync.WaitGroup // requests, and scopes that are replaced but in use

	mu       sync.Mutex
	current  *shared       // nil if there is no valid answer
	err      error         // why there is none
	stale    bool          // whether the client was never asked, or its list has changed since
	answered time.Time     // when the last answer arrived
	pending  chan struct{} // closed when the pending request is answered; nil if there is none
	silent   bool          // whether the client has not answered in time, and nothing since
}

// shared is a scope and its users.
type shared struct {
	*scope
	users sync.WaitGroup
}

// errDisconnected is returned by a follower whose client has disconnected.
var errDisconnected = errors.New("the client has disconnected")

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
	f.stale, f.silent = true, false
}

// askNow is changed, but asks at once, for connections on which a server may send requests at any
// time. The request has the values of ctx but does not end with it.
func (f *follower) askNow(ctx context.Context) {
	f.changed()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == nil {
		f.startLocked(ctx)
	}
}

// use calls do with the scope of the newest list, which is not dropped until use returns. It waits
// for a pending request, and asks if the last answer is out of date or failed. The error is from
// ask, ctx or do. Nobody waits again for a client that has not answered in time: it is asked in the
// background, until it answers or announces a change.
func (f *follower) use(ctx context.Context, do func(*scope) error) error {
	s, err := f.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.users.Done()
	return do(s.scope)
}

// acquire returns the newest scope and counts one more user.
func (f *follower) acquire(ctx context.Context) (*shared, error) {
	for asked := false; ; asked = true {
		f.mu.Lock()
		if f.pending == nil && (f.stale || !asked && f.expiredLocked()) {
			f.startLocked(ctx)
		}
		if f.pending == nil || f.silent && f.err != nil {
			defer f.mu.Unlock()
			if f.err != nil {
				return nil, f.err
			}
			if f.current == nil {
				return nil, errDisconnected
			}
			f.current.users.Add(1)
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

// expiredLocked reports whether the last answer is too old or failed.
func (f *follower) expiredLocked() bool {
	return f.err != nil || f.maxAge > 0 && time.Since(f.answered) > f.maxAge
}

// startLocked asks until the list has not changed in the meantime, unless the follower is closed.
func (f *follower) startLocked(ctx context.Context) {
	if f.base.Err() != nil {
		return
	}
	f.pending, f.stale = make(chan struct{}), false
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), f.timeout,
		fmt.Errorf("the client did not list its roots within %s", f.timeout))
	stop := context.AfterFunc(f.base, cancel)
	f.running.Go(func() {
		defer cancel()
		defer stop()
		for again := true; again; {
			value, err := f.ask(ctx)
			again = f.take(ctx, value, err)
		}
	})
}

// take takes an answer, and reports whether the client must be asked again instead of using it.
func (f *follower) take(ctx context.Context, value *scope, err error) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, ended := ctx.Err() != nil, f.base.Err() != nil
	again = f.stale && !late
	if err == nil && (again || ended) {
		f.drop(value)
	}
	f.silent = err != nil && (f.silent || late)
	switch {
	case ended:
		f.replaceLocked(nil, errDisconnected)
	case again:
		f.stale = false
		return true
	case late && err != nil:
		f.replaceLocked(nil, context.Cause(ctx))
	case err != nil:
		f.replaceLocked(nil, err)
	default:
		f.replaceLocked(&shared{scope: value}, nil)
	}
	close(f.pending)
	f.pending = nil
	return false
}

// replaceLocked replaces the last answer, whose users keep it until they are done.
func (f *follower) replaceLocked(s *shared, err error) {
	if old := f.current; old != nil {
		f.running.Go(func() {
			old.users.Wait()
			f.drop(old.scope)
		})
	}
	f.current, f.err, f.answered = s, err, time.Now()
}

// disconnect ends a pending request, because the client will not answer. The last answer stays in
// use.
func (f *follower) disconnect() { f.end(errDisconnected) }

// close ends a pending request, and drops the last answer. It waits for both.
func (f *follower) close() {
	f.disconnect()
	f.running.Wait()
	f.mu.Lock()
	f.replaceLocked(nil, errDisconnected)
	f.mu.Unlock()
	f.running.Wait()
}
