package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Turn represents a prompt from its arrival to its response, and owns its outcome: End ends it
// early, Finish and Fail say how it has ended, and Decide returns what is answered. It goes through
// the stages in order; in each but the last it may be told to end, which ends its context.
type Turn struct {
	request context.Context // of the request
	ctx     context.Context // ends when the turn ends early, and once the prompt was answered
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when the prompt was answered

	// not held while the backend is called, so that a turn can be ended whatever the backend does
	mu      sync.Mutex
	stage   stage
	session Session     // whose backend was given the prompt
	params  backend.Raw // of the session/cancel that ended it
	ending  ending      // zero until Finish or Fail
}

type stage int

const (
	arrived stage = iota // until Start
	running              // the backend has the prompt
	over                 // the backend is done with it, or no longer waited for: Run has returned
	decided              // nothing changes the response any more
)

// Session has the methods that a turn needs of the session in which it runs.
type Session interface {
	// WithBackend calls do with the session of the backend, which only one do at a time uses.
	WithBackend(do func(backend.Session))
	// Cancel tells the backend that its turn ends early, with the params of the client's
	// session/cancel, if there was one.
	Cancel(params backend.Raw)
}

// New returns a turn of the request with the context ctx. If ctx ends, the turn ends as
// cancelled: the client cancelled the request or left. In the turn's context the request counts as
// answered once the turn is: other clients do not wait until this one has read its response.
func New(ctx context.Context) *Turn {
	t := &Turn{request: ctx, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(
		jsonrpc.WithAnswered(context.WithoutCancel(ctx), t.done))
	context.AfterFunc(ctx, func() { t.End(backend.ErrCancelled) })
	return t
}

// Context returns the context of the turn. It ends when the turn ends early, and once the prompt
// was answered.
func (t *Turn) Context() context.Context { return t.ctx }

// End ends the turn early and tells the backend, once.
func (t *Turn) End(cause error) { End([]*Turn{t}, cause, nil) }

// End ends turns of a session early and tells the backend, once for all of them. It begins
// with the last of them, since the end of a turn lets the next one run. params are those of the
// client's session/cancel, if there was one.
func End(turns []*Turn, cause error, params backend.Raw) {
	var prompted []*Turn // those that the backend has
	for _, t := range slices.Backward(turns) {
		if t.markEnded(cause, params) {
			prompted = append(prompted, t)
		}
	}
	if len(prompted) == 0 {
		return
	}
	s := prompted[0].session
	s.WithBackend(func(backend.Session) {
		if slices.ContainsFunc(prompted, func(t *Turn) bool { return t.at() == running }) {
			s.Cancel(params)
		}
	})
}

// markEnded marks the turn as ending early. It reports whether the backend has the prompt and so
// must be told.
func (t *Turn) markEnded(cause error, params backend.Raw) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == decided || t.ctx.Err() != nil {
		return false
	}
	t.params = params
	t.stop(cause)
	return t.stage == running
}

// Start gives s's backend the prompt, with give, and tells it at once if the turn ended while give
// was called. If the turn had already ended, the work fails.
func (t *Turn) Start(s Session, give func(backend.Session) backend.Work) (work backend.Work) {
	s.WithBackend(func(b backend.Session) {
		if t.ctx.Err() != nil {
			work = jsonrpc.Fail(errors.New("the turn did not run"))
			return
		}
		t.mu.Lock()
		t.session = s
		t.mu.Unlock()
		work = give(b)
		if ended := t.advance(running); ended {
			s.Cancel(t.params)
		}
	})
	return work
}

// advance begins a stage, unless a later one has begun. It reports whether the turn has ended.
func (t *Turn) advance(to stage) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = max(t.stage, to)
	return t.ctx.Err() != nil
}

func (t *Turn) at() stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage
}

// StartedIn reports whether s's backend was given the prompt.
func (t *Turn) StartedIn(s Session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session == s
}

// RunsIn reports whether s's backend has the prompt, and the turn was not told to end.
func (t *Turn) RunsIn(s Session) bool {
	return t.StartedIn(s) && t.at() == running && t.ctx.Err() == nil
}

// IsOver reports whether Run has returned, or is about to.
func (t *Turn) IsOver() bool { return t.at() >= over }

// Finish notes what came of the turn in the backend.
func (t *Turn) Finish(came Outcome) {
	if came.Err == nil && came.StopReason() == "" {
		came = Outcome{Err: errors.New("the agent answered the prompt without a stop reason")}
	}
	cause := t.Cause()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.cause, t.ending.came = cause, came
}

// Fail notes an error, before the backend had the prompt or after Finish. Only the first counts.
func (t *Turn) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.failure = cmp.Or(t.ending.failure, err)
}

// Outcome returns how the turn has ended, as far as that is known.
func (t *Turn) Outcome() Outcome {
	t.mu.Lock()
	e := t.ending
	t.mu.Unlock()
	return e.outcome(t.Cause())
}

// Decide decides the response, just before it is written, and returns it.
func (t *Turn) Decide() Outcome {
	t.advance(decided)
	return t.Outcome()
}

// IsDecided reports whether nothing changes the response any more. The other viewers were shown how
// the turn has ended, or will be.
func (t *Turn) IsDecided() bool { return t.at() == decided }

// countGoingOn returns how many of the turns go on.
func countGoingOn(turns []*Turn) (count int) {
	for _, t := range turns {
		if t.goesOn() {
			count++
		}
	}
	return count
}

// goesOn reports whether the turn was not told to end, and its response is not decided.
func (t *Turn) goesOn() bool { return !t.IsDecided() && t.ctx.Err() == nil }

// Cause returns why the turn ended early, nil if it did not.
func (t *Turn) Cause() error { return context.Cause(t.ctx) }

// answered notes, once, that the prompt was answered.
func (t *Turn) answered() {
	t.stop(backend.ErrTurnOver)
	close(t.done)
}

// Done returns a channel that is closed when the prompt was answered.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Wait waits until the prompt was answered.
func (t *Turn) Wait(ctx context.Context) error { return tasks.Await(ctx, t.done) }

// leaveGrace is how long a turn may take to end once the client has left. Its prompt is answered
// before the program ends.
const leaveGrace = time.Second

// Run runs work on a goroutine of the group, and returns what came of it. If the turn ends early,
// Run waits only for the grace period, and drops a later result. Then the turn is over for the
// backend.
func (t *Turn) Run(g *tasks.Group, grace time.Duration, work backend.Work) Outcome {
	defer t.leaveBackend()
	returned := make(chan Outcome, 1)
	g.Go(func() {
		var o Outcome
		defer func() { returned <- o }()
		o.Err = g.Guard("prompt", func() (err error) {
			o.Result, err = work()
			return err
		})
	})
	select {
	case o := <-returned:
		return o
	case <-t.ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	defer context.AfterFunc(t.request, func() {
		if cause := context.Cause(t.request); errors.Is(cause, jsonrpc.ErrClosed) ||
			errors.Is(cause, backend.ErrClosed) {
			late.Reset(min(grace, leaveGrace))
		}
	})()
	select {
	case o := <-returned:
		return o
	case <-late.C:
		return Outcome{Err: t.Cause()}
	}
}

// leaveBackend notes that the backend is done with the turn, or no longer waited for. If the
// backend is being told of the turn's end, leaveBackend waits for that.
func (t *Turn) leaveBackend() {
	if t.at() == running {
		t.session.WithBackend(func(backend.Session) { t.advance(over) })
	} else {
		t.advance(over)
	}
}

// Outcome is how a turn ended: the result of the prompt, or an error.
type Outcome struct {
	Result backend.Raw
	Err    error
}

// ending has what determines the outcome of a turn.
type ending struct {
	came    Outcome // in the backend
	cause   error   // why the turn was told to end early until then, nil if it was not
	failure error   // outside of the backend, nil if nothing has failed
}

// outcome returns the outcome of a turn. now is why it was told to end, nil if it was not. A turn
// that was cancelled has what came of it besides the stop reason. One that had sent too much was
// stopped, unless the backend has completed it. Any other cause is an error, and so is a failure.
func (e ending) outcome(now error) Outcome {
	o := e.came
	completed := o.Err == nil && o.StopReason() != sdk.StopReasonCancelled
	switch {
	case e.cause == nil, errors.Is(e.cause, backend.ErrCancelled):
	case errors.Is(e.cause, ErrFull) && !completed:
		o = Outcome{Result: backend.Stopped(sdk.StopReasonMaxTurnRequests)}
	default:
		o = Outcome{Err: e.cause}
	}
	if errors.Is(now, backend.ErrCancelled) {
		return Outcome{Result: strictjson.Set(o.Result, "stopReason",
			strictjson.Text(string(sdk.StopReasonCancelled)))}
	}
	o.Err = cmp.Or(o.Err, e.failure)
	return o
}

// StopReason returns the stop reason of a prompt, "" if it failed or its result has none.
func (o Outcome) StopReason() sdk.StopReason {
	if o.Err != nil {
		return ""
	}
	return sdk.StopReason(strictjson.FindText(o.Result, "stopReason"))
}

// ErrFull ends a turn that has sent too many updates. Otherwise an agent that loops would fill the
// disk.
var ErrFull = errors.New("the turn has reached the limit for the output of one turn")
