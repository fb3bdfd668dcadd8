package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// turn represents a prompt from its arrival to its response.
type turn struct {
	request context.Context // of the request
	ctx     context.Context // ends when the turn ends early
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when the prompt was answered
	finish  sync.Once
	number  int64 // in the store

	entered   bool // its ticket has held the queue, which guards this
	exclusive bool // no other turn overlaps it; set before its ticket is released

	// not held while the backend is called, so that a turn can be ended whatever the backend does
	mu        sync.Mutex
	stage     turnStage
	session   *session    // whose backend has the prompt
	ended     bool        // it was told to end early
	params    backend.Raw // of the session/cancel that ended it
	committed bool        // its end was stored or is being stored
	decided   bool        // its response is decided
}

type turnStage int

const (
	turnWaiting  turnStage = iota
	turnStarting           // the backend's Prompt is being called
	turnRunning            // the backend has the prompt
	turnOver               // the backend is done with it or is no longer waited for
)

// newTurn returns a turn of the request with the context ctx. If ctx ends, the turn ends as
// cancelled: the client cancelled the request or left.
func newTurn(ctx context.Context) *turn {
	t := &turn{request: ctx, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { t.end(backend.ErrCancelled) })
	return t
}

// end ends the turn early and tells the backend, once.
func (t *turn) end(cause error) { endTurns([]*turn{t}, cause, nil) }

// endTurns ends turns of a session early and tells the backend, once for all of them. It begins
// with the last of them, since the end of a turn lets the next one run. params are those of the
// client's session/cancel, if there was one.
func endTurns(turns []*turn, cause error, params backend.Raw) {
	var running []*turn // those that the backend has
	for _, t := range slices.Backward(turns) {
		if t.markEnded(cause, params) {
			running = append(running, t)
		}
	}
	if len(running) == 0 {
		return
	}
	s := running[0].session
	s.withBackend(func() {
		if slices.ContainsFunc(running, func(t *turn) bool { return t.isAt(turnRunning) }) {
			s.cancelBackend(params)
		}
	})
}

// markEnded marks the turn as ending early. It reports whether the backend has the prompt and so
// must be told.
func (t *turn) markEnded(cause error, params backend.Raw) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.decided {
		return false
	}
	t.ended, t.params = true, params
	t.stop(cause)
	return t.stage == turnRunning
}

// start gives s's backend the prompt, and tells it at once if the turn ended while it was called.
// It returns nil if the turn had already ended.
func (t *turn) start(s *session, params backend.Raw, u backend.Updates) (work backend.Work) {
	if !t.markStarting(s) {
		return nil
	}
	s.withBackend(func() {
		work = s.backend.Prompt(t.ctx, params, u)
		if t.markRunning() {
			s.cancelBackend(t.params)
		}
	})
	return work
}

// markStarting reports whether the turn may start in s: it has not ended.
func (t *turn) markStarting(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.stage, t.session = turnStarting, s
	return true
}

// markRunning notes that the backend has the prompt. It reports whether the turn has ended.
func (t *turn) markRunning() (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == turnStarting {
		t.stage = turnRunning
	}
	return t.ended
}

func (t *turn) isAt(stage turnStage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == stage
}

// runsIn reports whether s's backend was given the prompt.
func (t *turn) runsIn(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session == s
}

// over notes that the backend is done with the turn. If the backend is being told of the turn's
// end, over waits for that.
func (t *turn) over() {
	setOver := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stage = turnOver
	}
	if t.isAt(turnRunning) {
		t.session.withBackend(setOver)
	} else {
		setOver()
	}
}

// decide decides the response just before it is written: a turn that was cancelled until then is
// answered as cancelled.
func (t *turn) decide(result json.RawMessage, err error) (json.RawMessage, error) {
	if t.markDecided() {
		return cancelledResult(result), nil
	}
	return result, err
}

// markDecided notes that nothing changes the turn's response any more. It reports whether the turn
// was cancelled.
func (t *turn) markDecided() (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decided = true
	return t.isCancelled()
}

// blocks reports whether the turn is neither over nor ending, so that a new prompt must wait for it
// or overlaps it.
func (t *turn) blocks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && !t.decided
}

// beginCommit reports whether the caller must store the turn's end. It returns true once.
func (t *turn) beginCommit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.committed
	t.committed = true
	return first
}

// cause returns why the turn ended early, nil if it did not.
func (t *turn) cause() error { return context.Cause(t.ctx) }

// isCancelled reports whether the turn was ended on behalf of the client.
func (t *turn) isCancelled() bool { return errors.Is(t.cause(), backend.ErrCancelled) }

// answered notes that the prompt was answered.
func (t *turn) answered() {
	t.finish.Do(func() {
		t.markDecided()
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

// await runs work and returns its outcome. If the turn ends early, await waits only for the grace
// period, and drops what work returns later.
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
	grace := a.options.tuning.CancelGrace
	late := time.NewTimer(grace)
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
			if cause := context.Cause(t.request); errors.Is(cause, jsonrpc.ErrClosed) ||
				errors.Is(cause, backend.ErrClosed) {
				late.Reset(min(grace, leaveGrace))
			}
		}
	}
}

// turnUpdates implements [backend.Updates] for one turn.
type turnUpdates struct {
	session *session
	turn    *turn
	sent    atomic.Int64 // bytes of updates

	mu   sync.RWMutex
	over bool
}

// errTurnFull ends a turn that has sent more updates than one turn may. Otherwise an agent that
// loops would fill the disk.
var errTurnFull = errors.New("the turn has reached the limit for what one turn may say and do")

// afterFull is how much a full turn may still send to end its tool calls, in bytes.
const afterFull = 1 << 20

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, (*session).update)
}

// Commit implements [backend.Updates].
func (u *turnUpdates) Commit(ctx context.Context, update backend.Update) error {
	return u.send(ctx, update, (*session).commit)
}

func (u *turnUpdates) send(ctx context.Context, update backend.Update, send sender) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.over {
		return backend.ErrTurnOver
	}
	agent := u.session.agent
	limit, size := agent.options.tuning.TurnBytes, int64(len(update.Raw))
	sent := u.sent.Add(size)
	if sent > limit && sent-size <= limit {
		agent.running.Go(func() { u.turn.end(errTurnFull) })
	}
	if sent > limit+afterFull {
		return errTurnFull
	}
	return send(u.session, ctx, commands.Announce(update))
}

// current returns the session to which updates are sent.
func (u *turnUpdates) current() *session {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.session
}

// watchLease ends the turn soon after another process has taken its session over. Without it an
// agent that says nothing, and so stores nothing, would go on working.
func (u *turnUpdates) watchLease(t *turn) {
	a := u.current().agent
	a.running.Go(func() {
		every := time.NewTicker(a.options.tuning.LeaseCheck)
		defer every.Stop()
		for {
			select {
			case <-every.C:
			case <-t.ctx.Done():
				return
			}
			s := u.current()
			if err := s.checkLease(t.ctx); gone(err) {
				s.failed(err)
				return
			}
		}
	})
}

// moveTo sends later updates to s, which has replaced the turn's session.
func (u *turnUpdates) moveTo(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.session = s
}

// end waits for updates that are being sent and rejects later ones. It returns the turn's session.
func (u *turnUpdates) end() *session {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	return u.session
}
