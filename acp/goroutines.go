package acp

import (
	"context"
	"sync"
)

// goroutines are those that somebody waits for. Unlike those of a WaitGroup, some may be started meanwhile: by what hangs,
// and was left behind.
type goroutines struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when there are none; nil if nobody waits
}

// Go runs do on a goroutine of its own.
func (g *goroutines) Go(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	go func() {
		defer g.done()
		do()
	}()
}

func (g *goroutines) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.count == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// wait waits until there are none, at most until ctx ends. It reports whether it came to that.
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
