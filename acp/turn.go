package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// turn is one prompt, from its arrival to its answer.
type turn struct {
	request context.Context // the request's own
	ctx     context.Context
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when the prompt was answered
	finish  sync.Once

	mu        sync.Mutex // not held while the runtime is called: a turn can be ended whatever its runtime does
	stage     turnStage
	with      *session    // whose runtime has the prompt
	ended     bool        // told to end early
	params    backend.Raw // of the session/cancel that ended it
	committed bool        // its end was recorded, or is being
	settled   bool        // its answer is decided
}

type turnStage int

const (
	turnWaiting turnStage = iota // not yet handed to the runtime
	turnHanding                  // it is being handed over
	turnRunning                  // the runtime has it
	turnOver                     // the runtime is done with it, or was given up
)

// newTurn returns a turn of the request with context ctx, whose end ends the turn as a
// cancelled one: the client gave up on the request (W6) or left (W9).
func newTurn(ctx context.Context) *turn {
	t := &turn{request: ctx, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { t.end(backend.ErrCancelled, nil) })
	return t
}

// end ends the turn early, for cause, and tells the runtime once. params are those of the
// client's session/cancel, if that is why.
func (t *turn) end(cause error, params backend.Raw) {
	if !t.ends(cause, params) {
		return
	}
	t.with.inOrder(func() {
		if t.isAt(turnRunning) {
			t.with.tellCancelled(params)
		}
	})
}

// ends notes that the turn ends early. It reports whether the runtime has the turn and is to be told.
func (t *turn) ends(cause error, params backend.Raw) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.settled {
		return false
	}
	t.ended, t.params = true, params
	t.stop(cause)
	return t.stage == turnRunning
}

// handOver gives the prompt to s's runtime, and then tells it of the end if that came meanwhile. It returns nil if the
// turn has ended before.
func (t *turn) handOver(s *session, params backend.Raw, u backend.Updates) (work backend.Work) {
	if !t.hand(s) {
		return nil
	}
	s.inOrder(func() {
		work = s.runtime.Prompt(t.ctx, params, u)
		if t.handed() {
			s.tellCancelled(t.params)
		}
	})
	return work
}

// hand begins to hand the turn over. It reports whether it has not ended before.
func (t *turn) hand(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.stage, t.with = turnHanding, s
	return true
}

// handed says that the runtime has the turn. It reports whether that has ended meanwhile.
func (t *turn) handed() (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == turnHanding {
		t.stage = turnRunning
	}
	return t.ended
}

func (t *turn) isAt(stage turnStage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == stage
}

// runsIn reports whether s's runtime was given the turn. A lane's next turn may be another session's.
func (t *turn) runsIn(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.with == s
}

// over marks the runtime as done with the turn. If it is being told of the end, it knows when over returns.
func (t *turn) over() {
	if t.isAt(turnRunning) {
		t.with.inOrder(t.setOver)
	} else {
		t.setOver()
	}
}

func (t *turn) setOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = turnOver
}

// settle decides the turn's answer: what comes later does not change it. It reports whether the turn was
// cancelled for the client.
func (t *turn) settle() (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = true
	return t.isCancelled()
}

// inTheWay reports whether nothing has told the turn to end, and nothing has ended it, so
// that another prompt is one too many.
func (t *turn) inTheWay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && !t.settled
}

// commit reports whether the turn's end is still to be recorded, true once.
func (t *turn) commit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.committed
	t.committed = true
	return first
}

// cause is why the turn ended early, nil if it did not.
func (t *turn) cause() error { return context.Cause(t.ctx) }

// isCancelled reports whether the turn was cancelled for the client.
func (t *turn) isCancelled() bool { return errors.Is(t.cause(), backend.ErrCancelled) }

// answered marks the prompt as answered and frees the turn.
func (t *turn) answered() {
	t.finish.Do(func() {
		t.settle()
		t.stop(backend.ErrTurnOver)
		close(t.done)
	})
}

// wait waits until the prompt was answered.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outcome is what a runtime's Work returned.
type outcome struct {
	result backend.Raw
	err    error
}

// leaveGrace is how long a turn may take to end when the client has left: its prompt is still answered,
// within the time that the program has to end (W9).
const leaveGrace = time.Second

// await runs work and waits for it; once the turn has ended early for at most its grace more. What a work
// returns after that is dropped.
func (t *turn) await(a *agent, work backend.Work) outcome {
	returned := make(chan outcome, 1)
	a.running.Go(func() {
		var o outcome
		defer func() { returned <- o }()
		o.err = a.guard("prompt", func() (err error) {
			o.result, err = work()
			return err
		})
	})
	select {
	case o := <-returned:
		return o
	case <-t.ctx.Done():
	}
	late := time.NewTimer(a.options.tuning.CancelGrace)
	defer late.Stop()
	requestEnd := t.request.Done()
	for {
		select {
		case o := <-returned:
			return o
		case <-late.C:
			return outcome{err: t.cause()}
		case <-requestEnd:
			requestEnd = nil
			if errors.Is(context.Cause(t.request), jsonrpc.ErrClosed) {
				late.Reset(min(a.options.tuning.CancelGrace, leaveGrace))
			}
		}
	}
}

// turnUpdates is what a runtime is given for one turn.
type turnUpdates struct {
	session *session

	mu   sync.RWMutex
	over bool
}

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.over {
		return backend.ErrTurnOver
	}
	return u.session.update(ctx, update)
}

// end waits for the updates that are being sent and refuses later ones.
func (u *turnUpdates) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
}
