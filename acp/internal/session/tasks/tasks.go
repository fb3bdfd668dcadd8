// Package tasks runs what may outlive its request, and what may hang or panic: goroutines that
// somebody waits for, work that waits for a disk, and the embedder's code.
package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"

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

// FromDisk is [Group.OnDisk] for a function that returns a value.
func FromDisk[T any](ctx context.Context, g *Group, do func() (T, error)) (T, error) {
	var value, none T
	err := g.OnDisk(ctx, func() (err error) {
		value, err = do()
		return err
	})
	if err != nil { // do may still be running
		return none, err
	}
	return value, nil
}

// OnDisk calls do, which may wait for a disk, on another goroutine: a disk that does not
// answer ignores contexts. If ctx ends first, OnDisk returns its cause, and do goes on in the
// background.
func (g *Group) OnDisk(ctx context.Context, do func() error) error {
	return g.OnDiskOrUndo(ctx, do, func() {})
}

// OnDiskOrUndo is OnDisk, and calls undo if do fails or returns too late.
func (g *Group) OnDiskOrUndo(ctx context.Context, do func() error, undo func()) error {
	taken := make(chan error)
	g.Go(func() {
		err := g.Guard("disk", do)
		select {
		case taken <- err:
		case <-ctx.Done():
			undo()
		}
	})
	select {
	case err := <-taken:
		if err != nil {
			undo()
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
