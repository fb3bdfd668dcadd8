package proxy

import (
	"context"
	"sync"
)

// barrier keeps what the child sends behind a response from reaching the client before that response (P6).
type barrier struct {
	mu      sync.Mutex
	waiting []<-chan struct{}
}

// add is called on the read loop when a response was read. answered is closed once the client has it; nil
// if nobody says.
func (b *barrier) add(answered <-chan struct{}) {
	if answered == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, answered)
}

// wait waits until the client has all responses that were read so far, or ctx ends.
func (b *barrier) wait(ctx context.Context) {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, answered := range waiting {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}
