package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Question is a request to the user that is sent to every viewer of a session, also to those that
// come before it is answered. The first answer wins, and the others' requests are cancelled.
//
// A client that cannot show the question, fails, or says that the user dismissed it, abstains. If
// all viewers have abstained, the last thing that one of them said is the answer. What a client
// says that may not answer does not count.
type Question[C Client] struct {
	viewers *Viewers[C]
	form    QuestionForm[C]
	ctx     context.Context // ends with the question
	end     context.CancelFunc
	over    atomic.Bool
	waiting sync.WaitGroup
	replies chan reply[C]
	calls   map[*viewer[C]]*questionCall[C]
	last    Answer[C] // what a client said that abstained, rather an outcome than an error

	// Guarded by the mutex of the viewers:
	stopped   bool
	stoppedBy C
}

// QuestionForm says how a question is asked.
type QuestionForm[C Client] struct {
	// Send sends the question to a client. It fails for one that cannot show it.
	Send Caller[C]
	// Decides reports whether a result is an answer of c. Otherwise the client abstains.
	Decides func(c C, result backend.Raw) bool
	// Late is called when a client has answered too late. It must not wait.
	Late func(c C, result backend.Raw)
	// Cancelled is the answer if a client stopped the turn, and none has said anything else.
	Cancelled backend.Raw
	// OfTurn means that the context is that of a turn, with which the question ends. Stop does not
	// concern it, because that may be about other turns.
	OfTurn bool
}

// Answer is the answer to a question, and who gave it.
type Answer[C Client] struct {
	Result backend.Raw
	Err    error
	By     C // zero if no client did
}

// questionCall is a question as one viewer was asked it.
type questionCall[C Client] struct {
	viewer    *viewer[C]
	cancel    context.CancelFunc
	abstained bool
	gone      bool // the client has left
	late      sync.Once
}

type reply[C Client] struct {
	to     *questionCall[C]
	result backend.Raw
	err    error
}

// Ask asks the viewers a question, without waiting. The caller calls Wait.
func (v *Viewers[C]) Ask(ctx context.Context, form QuestionForm[C]) *Question[C] {
	q := &Question[C]{viewers: v, form: form}
	q.ctx, q.end = context.WithCancel(ctx)
	q.replies, q.calls = make(chan reply[C]), make(map[*viewer[C]]*questionCall[C])
	if !form.OfTurn {
		v.mu.Lock()
		v.open[q] = true
		v.mu.Unlock()
	}
	all, _ := v.current()
	q.ask(all)
	return q
}

// Stop notes that c has stopped the turns of the session, or the program if c is zero. An open
// question is dismissed when c says so, or if c was not asked; the others are not asked any longer.
// Stop reports whether there was one.
func (v *Viewers[C]) Stop(c C) (asks bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for q := range v.open {
		if !q.stopped {
			q.stopped, q.stoppedBy, asks = true, c, true
		}
	}
	v.changeLocked()
	return asks
}

// ask asks the viewers that were not asked and can be asked now.
func (q *Question[C]) ask(all []*viewer[C]) {
	for _, w := range all {
		q.viewers.mu.Lock()
		isLive := w.state == live
		q.viewers.mu.Unlock()
		if q.calls[w] != nil || !isLive {
			continue
		}
		call := &questionCall[C]{viewer: w}
		q.calls[w] = call
		ctx, cancel := during(q.ctx, w.tenure)
		call.cancel = cancel
		work := q.form.Send(ctx, w.client, func(result backend.Raw, err error) {
			if q.over.Load() {
				q.answeredLate(reply[C]{call, result, err})
			}
		})
		q.waiting.Go(func() {
			result, err := work()
			cancel()
			r := reply[C]{call, result, err}
			select {
			case q.replies <- r:
			case <-q.ctx.Done():
				q.answeredLate(r)
			}
		})
	}
}

// answeredLate handles a response that came when the question had been answered. A client that has
// stopped the turn itself knows why its answer has no effect.
func (q *Question[C]) answeredLate(r reply[C]) {
	c := r.to.viewer.client
	q.viewers.mu.Lock()
	stops := q.stopped && q.stoppedBy == c
	q.viewers.mu.Unlock()
	if r.err == nil && !stops && c.Answers() && q.form.Decides(c, r.result) {
		r.to.late.Do(func() { q.form.Late(c, r.result) })
	}
}

// Wait waits for the answer, until the context of Ask ends. While there is no viewer, it waits for
// one.
func (q *Question[C]) Wait() Answer[C] {
	defer q.close()
	for {
		all, changed := q.viewers.current()
		stopped := q.isStopped()
		if !stopped {
			q.ask(all)
		}
		if answer, ok := q.settled(all, stopped); ok {
			return answer
		}
		select {
		case r := <-q.replies:
			c := r.to.viewer.client
			if !c.Answers() {
				continue
			}
			if r.err == nil && q.form.Decides(c, r.result) {
				return Answer[C]{r.result, nil, c}
			}
			q.abstains(r)
		case <-changed:
		case <-q.ctx.Done():
			return Answer[C]{Err: context.Cause(q.ctx)}
		}
	}
}

// isStopped reports whether a client has stopped the turn. The questions to other clients end then.
func (q *Question[C]) isStopped() bool {
	q.viewers.mu.Lock()
	stopped, by := q.stopped, q.stoppedBy
	q.viewers.mu.Unlock()
	if stopped {
		for w, call := range q.calls {
			if w.client != by {
				call.abstained = true
				call.cancel()
			}
		}
	}
	return stopped
}

// abstains notes that a client does not answer.
func (q *Question[C]) abstains(r reply[C]) {
	r.to.abstained = true
	r.to.gone = errors.Is(r.err, jsonrpc.ErrClosed) || errors.Is(r.err, errDetached)
	if !r.to.gone && (r.err == nil || q.last.Result == nil) {
		q.last = Answer[C]{r.result, r.err, r.to.viewer.client}
	}
}

// settled returns the answer if nobody is left who may give another one.
func (q *Question[C]) settled(all []*viewer[C], stopped bool) (answer Answer[C], ok bool) {
	abstained := 0
	for _, w := range all {
		switch call := q.calls[w]; {
		case !w.client.Answers(), call == nil && stopped:
		case call == nil || !call.abstained:
			return answer, false
		case !call.gone:
			abstained++
		}
	}
	switch {
	case stopped && q.last.Result == nil:
		return Answer[C]{Result: q.form.Cancelled}, true
	case stopped || abstained > 0:
		return q.last, true
	}
	return answer, false
}

// close ends the question in all clients.
func (q *Question[C]) close() {
	q.over.Store(true)
	q.viewers.mu.Lock()
	delete(q.viewers.open, q)
	q.viewers.mu.Unlock()
	q.end()
	q.waiting.Wait()
}
