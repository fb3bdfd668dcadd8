package acp

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// errPanicked is returned for a call of the embedder's code that panicked.
var errPanicked = errors.New("internal error: the program's code panicked, see its log")

// guard runs do, which is the embedder's code, so that a panic does not end the program or skip the
// steps that follow. It logs a panic and returns it as an error. Requests and the goroutines of
// agent.running need no guard: a panic ends only them.
func (a *agent) guard(what string, do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			jsonrpc.LogPanic(a.log, value, "in", what)
			err = errPanicked
		}
	}()
	return do()
}

// fromDisk is [agent.onDisk] for a function that returns a value.
func fromDisk[T any](ctx context.Context, a *agent, do func() (T, error)) (T, error) {
	var value, none T
	err := a.onDisk(ctx, func() (err error) {
		value, err = do()
		return err
	})
	if err != nil { // do may still be running
		return none, err
	}
	return value, nil
}

// onDisk calls do, which may wait for a disk, on another goroutine: a disk that does not
// answer ignores contexts. If ctx ends first, onDisk returns its cause, and do goes on in the
// background.
func (a *agent) onDisk(ctx context.Context, do func() error) error {
	return a.onDiskOrUndo(ctx, do, func() {})
}

// onDiskOrUndo is onDisk, and calls undo if do fails or returns too late.
func (a *agent) onDiskOrUndo(ctx context.Context, do func() error, undo func()) error {
	taken := make(chan error)
	a.running.Go(func() {
		err := a.guard("disk", do)
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

// goroutines is a WaitGroup whose Go may be called while wait is running, and whose wait gives up
// when its context ends. A panic in one of them is logged and ends only that goroutine.
type goroutines struct {
	log *slog.Logger // set before the first Go

	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count reaches 0; nil if nothing waits
}

// Go calls do on a new goroutine.
func (g *goroutines) Go(do func()) {
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

func (g *goroutines) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	if g.count == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// wait waits until no goroutine is left or ctx ends, and reports which.
func (g *goroutines) wait(ctx context.Context) bool {
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
