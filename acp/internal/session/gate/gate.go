// Package gate holds back what a backend says in a session until the response that opens it was
// sent.
package gate

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Phase is how far a session has come.
type Phase int

// The phases, in order.
const (
	Opening   Phase = iota // the session is being opened and stored
	Buffering              // it is active, but its response was not sent
	Releasing              // the buffered updates are being sent
	Live
	Closed
)

// maxBuffered and maxBytes limit the updates that are buffered before a lifecycle response.
const maxBuffered, maxBytes = 1000, 4 << 20

// Gate buffers what the backend of a session says, and keeps the state that it saves, until there
// is the session, an S, and its response was sent. It is safe for concurrent use.
type Gate[S any] struct {
	store   func(s S, ctx context.Context, state []byte) error
	settled chan struct{} // closed when the phase becomes Live or Closed
	saving  sync.Mutex    // held while a state is stored, so that the last one remains

	mu       sync.Mutex
	phase    Phase
	session  S                     // since Activate
	buffered []sessionstore.Update // until the phase Releasing
	bytes    int                   // of them
	state    []byte                // to be stored with the activation, or nil
}

// New returns the gate of a session that is being opened. store stores a state of the session s.
func New[S any](store func(s S, ctx context.Context, state []byte) error) *Gate[S] {
	return &Gate[S]{store: store, settled: make(chan struct{})}
}

// Phase returns the phase.
func (g *Gate[S]) Phase() Phase {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase
}

// Advance begins a phase in which nothing is buffered, unless it is already past, and returns what
// was buffered.
func (g *Gate[S]) Advance(to Phase) (buffered []sessionstore.Update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase >= to {
		return nil
	}
	if g.phase < Live && to >= Live {
		close(g.settled)
	}
	buffered = g.buffered
	g.phase, g.buffered = to, nil
	return buffered
}

// Buffer buffers an update that comes before the response. It reports false for one that comes
// later, or while the buffered ones are being sent: that is sent after [Gate.Wait].
func (g *Gate[S]) Buffer(u sessionstore.Update) (buffered bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase >= Releasing {
		return false, nil
	}
	if len(g.buffered) == maxBuffered || g.bytes+len(u.Raw) > maxBytes {
		return false, backend.ErrTooManyUpdates
	}
	g.buffered = append(g.buffered, u)
	g.bytes += len(u.Raw)
	return true, nil
}

// Live returns the session, and whether it is in the phase Live.
func (g *Gate[S]) Live() (s S, live bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session, g.phase == Live
}

// Wait waits until the buffered updates are sent, and returns the session. It returns
// [backend.ErrClosed] if that is closed.
func (g *Gate[S]) Wait(ctx context.Context) (s S, err error) {
	if err := tasks.Await(ctx, g.settled); err != nil {
		return s, err
	}
	s, live := g.Live()
	if !live {
		return s, backend.ErrClosed
	}
	return s, nil
}

// Kinds returns the kinds of the buffered updates.
func (g *Gate[S]) Kinds() map[sessionstore.Kind]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	kinds := make(map[sessionstore.Kind]bool)
	for _, u := range g.buffered {
		kinds[u.Kind] = true
	}
	return kinds
}

// Activate ends the phase Opening: there is the session. It stores the state that was saved since
// TakeState, if there is one.
func (g *Gate[S]) Activate(ctx context.Context, s S) error {
	g.saving.Lock()
	defer g.saving.Unlock()
	g.mu.Lock()
	g.session = s
	g.phase = max(g.phase, Buffering)
	g.mu.Unlock()
	if late := g.TakeState(); late != nil {
		return g.store(s, ctx, late)
	}
	return nil
}

// TakeState returns the state to be stored with the activation, nil if the backend saved none.
func (g *Gate[S]) TakeState() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.state
	g.state = nil
	return state
}

// SaveState keeps a state in the phase Opening, and stores a later one.
func (g *Gate[S]) SaveState(ctx context.Context, state []byte) error {
	g.saving.Lock()
	defer g.saving.Unlock()
	g.mu.Lock()
	phase, s := g.phase, g.session
	if phase == Opening {
		g.state = append([]byte{}, state...)
	}
	g.mu.Unlock()
	switch phase {
	case Opening:
		return nil
	case Closed:
		return backend.ErrClosed
	}
	return g.store(s, ctx, state)
}
