// Package tasks runs what may outlive its request, and what may hang or panic: goroutines that
// somebody waits for, work that waits for a disk, and the embedder's code.
package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Group is a WaitGroup whose Go may be called while Wait is running, and whose Wait gives up when
// its context ends. A panic in a goroutine is logged and ends only that goroutine.
type Group struct {
	log *slog.Logger

	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count reaches 0; nil if nothing waits
}

// NewGroup returns a group without goroutines.
func NewGroup(log *slog.Logger) *Group { return &Group{log: log} }

// Go calls do on a new goroutine.
func (g *Group) Go(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	go func() {
		defer g.done()
		defer func() {
			if value := recover(); value != nil {
				jsonrpc.LogPanic(g.log, value, "in", "background")
			}
		}()
		do()
	}()
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	if g.count == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until no goroutine is left or ctx ends. It reports whether none is left.
func (g *Group) Wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.count == 0 {
		g.mu.Unlock()
		return true
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrPanicked is returned for a call of the embedder's code that panicked.
var ErrPanicked = errors.New("internal error: the program's code panicked, see its log")

// Guard runs do, which is the embedder's code, so that a panic does not end the program or skip the
// steps that follow. It logs a panic and returns it as an error. Requests and the goroutines of a
// group need no guard: a panic ends only them.
func (g *Group) Guard(what string, do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			jsonrpc.LogPanic(g.log, value, "in", what)
			err = ErrPanicked
		}
	}()
	return do()
}

// OnDisk calls do, which may wait for a disk, on another goroutine: a disk that does not
// answer ignores contexts. If ctx ends first, OnDisk returns its cause, and do goes on in the
// background.
func (g *Group) OnDisk(ctx context.Context, do func() error) error {
	_, err := FromDisk(ctx, g, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// FromDisk is [Group.OnDisk] for a function that returns a value.
func FromDisk[T any](ctx context.Context, g *Group, do func() (T, error)) (T, error) {
	return FromDiskOrUndo(ctx, g, do, func(T) {})
}

// FromDiskOrUndo is [FromDisk] for steps that must be undone if do fails or panics, or if its value
// comes too late. undo gets what do has returned.
func FromDiskOrUndo[T any](
	ctx context.Context, g *Group, do func() (T, error), undo func(T),
) (none T, _ error) {
	type result struct {
		value T
		err   error
	}
	taken := make(chan result)
	g.Go(func() {
		var r result
		r.err = g.Guard("disk", func() (err error) {
			r.value, err = do()
			return err
		})
		if r.err != nil {
			undo(r.value)
		}
		select {
		case taken <- r:
		case <-ctx.Done():
			if r.err == nil {
				undo(r.value)
			}
		}
	})
	select {
	case r := <-taken:
		if r.err != nil {
			return none, r.err
		}
		return r.value, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// CommitTimeout limits the work that must still be done after a request, a turn or a connection has
// ended, such as storing the end of a turn.
const CommitTimeout = 10 * time.Second

// errNotStored is the cause of a context whose CommitTimeout has passed.
var errNotStored = errors.New("the session could not be stored in time, because too much is " +
	"stored at once or the disk is slow; try again")

// Commit returns a context for what must be done within CommitTimeout, even if ctx has ended.
func Commit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), CommitTimeout, errNotStored)
}

// Insist calls do, which may be called again, until it is done or the context of a [Commit] ends
// after ctx.
func Insist(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	ctx, cancel := Commit(ctx)
	defer cancel()
	return do(ctx)
}

// Await waits until done is closed, or ctx ends.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Mutex has a value that one goroutine at a time uses. Unlike for a [sync.Mutex], waiting for it
// ends with a context.
type Mutex[T any] struct {
	free chan *T // holds the value while nobody uses it
}

// NewMutex returns a mutex with a value.
func NewMutex[T any](value T) Mutex[T] {
	m := Mutex[T]{make(chan *T, 1)}
	m.free <- &value
	return m
}

// With calls do with the value once nobody else uses it, unless ctx ends before.
func (m Mutex[T]) With(ctx context.Context, do func(*T) error) error {
	select {
	case value := <-m.free:
		defer func() { m.free <- value }()
		if ctx.Err() != nil { // even if the value was free
			return context.Cause(ctx)
		}
		return do(value)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
