package turns_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// window is a client that answers questions with its name once it may, unless it is gone.
type window struct {
	watches bool
	name    string
	left    atomic.Bool
	answers chan string // what it says; closed when it leaves

	mu   sync.Mutex
	got  []string
	full chan struct{} // if not nil, it has no room until this is closed
}

func newWindow(name string) *window { return &window{name: name, answers: make(chan string, 10)} }

func (w *window) HasLeft() bool { return w.left.Load() }

func (w *window) Answers() bool { return !w.watches }

func (w *window) Room() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full
}

func (w *window) Full() <-chan struct{} { return nil }

// fill takes the window's room, until the returned function is called.
func (w *window) fill() (empty func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := make(chan struct{})
	w.full = full
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.full = nil
		close(full)
	}
}

func (w *window) take(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, text)
	return nil
}

func (w *window) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.got...)
}

// room is viewers whose goroutines the test waits for.
type room struct {
	*turns.Viewers[*window]
	t       *testing.T
	slow    chan *window
	running sync.WaitGroup
}

func newRoom(t *testing.T, first *window, patience time.Duration) *room {
	r := &room{t: t, slow: make(chan *window, 10)}
	r.Viewers = turns.NewViewers(first, turns.ViewerOptions[*window]{
		Go:   r.running.Go,
		Slow: func(w *window) { r.slow <- w }, Patience: patience})
	t.Cleanup(func() {
		r.Close()
		r.running.Wait()
	})
	return r
}

func (r *room) send(text string) {
	r.Send(r.t.Context(), nil, len(text), func(w *window) error { return w.take(text) })
}

// A client that joins is sent what comes after the cut, in order, whenever it begins to read.
func TestViewersJoin(t *testing.T) {
	a, b := newWindow("a"), newWindow("b")
	r := newRoom(t, a, time.Hour)
	r.send("1")
	joining, ok := r.Enter(b)
	require.True(t, ok)
	r.send("2")
	release := joining.Keep()
	r.send("3")
	r.send("4")
	require.Empty(t, b.taken())
	release()
	r.send("5")
	r.Settle(t.Context(), b, func() {})
	require.Equal(t, []string{"3", "4", "5"}, b.taken())
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, a.taken())
	require.Equal(t, 1, r.Others(a))

	gone := newWindow("gone")
	gone.left.Store(true)
	_, ok = r.Enter(gone)
	require.False(t, ok, "a client that has left is shown nothing")
}

// If no viewer has room, the sender waits as long as it may; a viewer that takes nothing is dropped
// in the end.
func TestViewersAllSleep(t *testing.T) {
	a := newWindow("a")
	r := newRoom(t, a, time.Millisecond)
	a.fill()
	r.send("1")
	require.Equal(t, a, <-r.slow)
	require.NotNil(t, r.Alone())
	ctx, cancel := context.WithCancel(t.Context())
	b := newWindow("b")
	patient := newRoom(t, b, time.Hour)
	empty := b.fill()
	cancel()
	for _, name := range []string{"kept", "behind"} {
		patient.Send(ctx, nil, 1, func(w *window) error { return w.take(name) })
	}
	require.Empty(t, b.taken())
	empty()
	patient.Settle(t.Context(), b, func() {})
	require.Equal(t, []string{"kept", "behind"}, b.taken())
}

// A client that joins but does not read does not let the sender run ahead of the others.
func TestViewersWaitBesideOneThatEnters(t *testing.T) {
	a, b := newWindow("a"), newWindow("b")
	r := newRoom(t, a, time.Hour)
	for _, keeps := range []bool{false, true} {
		joining, ok := r.Enter(b)
		require.True(t, ok)
		if keeps {
			joining.Keep()
		}
		empty := a.fill()
		sent := make(chan struct{})
		r.running.Go(func() {
			defer close(sent)
			r.Send(t.Context(), nil, 1, func(w *window) error { return w.take("x") })
		})
		select {
		case <-sent:
			t.Error("the sender did not wait")
		case <-time.After(10 * time.Millisecond):
		}
		empty()
		<-sent
	}
	require.Equal(t, []string{"x", "x"}, a.taken())
}

func (w *window) ask(
	ctx context.Context, _ *window, onResponse func(backend.Raw, error),
) backend.Work {
	return func() (backend.Raw, error) {
		select {
		case said, ok := <-w.answers:
			if !ok {
				return nil, jsonrpc.ErrClosed
			}
			onResponse(backend.Raw(said), nil)
			return backend.Raw(said), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (r *room) ask(t *testing.T) chan turns.Answer[*window] {
	q := r.Poll(t.Context(), turns.Ballot[*window]{
		Send: func(
			ctx context.Context, to *window, onResponse func(backend.Raw, error),
		) backend.Work {
			return to.ask(ctx, to, onResponse)
		},
		Decides:   func(_ *window, result backend.Raw) bool { return result[0] != '-' },
		Late:      func(w *window, _ backend.Raw) { r.slow <- w },
		Cancelled: backend.Raw("cancelled"),
	})
	answered := make(chan turns.Answer[*window], 1)
	r.running.Go(func() { answered <- q.Wait() })
	return answered
}

func (r *room) join(w *window) {
	joining, _ := r.Enter(w)
	joining.Keep()()
}

// Who decides a question.
//
// Clauses N2, N7, N8.
func TestQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(r *room, a, b *window)
		result string
		by     string
	}{
		"the first answer, not one that dismisses": {func(_ *room, a, b *window) {
			a.answers <- "-dismissed"
			b.answers <- "yes"
		}, "yes", "b"},
		"the last one if all dismiss": {func(_ *room, a, b *window) {
			a.answers <- "-x"
			b.answers <- "-x"
		}, "-x", ""},
		"those who are left": {func(r *room, a, b *window) {
			a.answers <- "-x"
			close(b.answers)
			r.Leave(b)
		}, "-x", "a"},
		"who stopped the turn": {func(r *room, a, b *window) {
			r.Stop(a)
			a.answers <- "-stopped"
		}, "-stopped", "a"},
		"nobody, if a stranger stopped it": {func(r *room, a, b *window) {
			r.Stop(newWindow("c"))
		}, "cancelled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newWindow("a"), newWindow("b")
			r := newRoom(t, a, time.Hour)
			r.join(b)
			r.Settle(t.Context(), b, func() {})
			answered := r.ask(t)
			test.do(r, a, b)
			got := <-answered
			require.NoError(t, got.Err)
			require.Equal(t, test.result, string(got.Result))
			if test.by != "" {
				require.Equal(t, test.by, got.By.name)
			}
		})
	}
}
