package turns

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Poll is a request to the user that is sent to every viewer of a session, also to those that
// come before it is answered. The first answer wins, and the others' requests are cancelled.
//
// A client that cannot show the question, fails, or says that the user dismissed it, abstains. If
// all viewers have abstained, the last thing that one of them said is the answer. What a client
// says that may not answer does not count.
type Poll[C Client] struct {
	viewers *Viewers[C]
	ballot  Ballot[C]
	ctx     context.Context // ends with the question
	end     context.CancelFunc
	waiting sync.WaitGroup
	replies chan reply[C]
	calls   map[*viewer[C]]*pollCall[C]
	last    Answer[C] // what a client said that abstained, rather an outcome than an error

	// Guarded by the mutex of the viewers:
	stopped   bool
	stoppedBy C
}

// Ballot says how a [Poll] asks its question.
type Ballot[C Client] struct {
	// Send sends the question to a client. It fails for one that cannot show it. It has onResponse
	// called when the client answers, even if nobody waits for the answer any more.
	Send func(
		ctx context.Context, to C, onResponse func(result backend.Raw, err error),
	) backend.Work
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

// pollCall is a question as one viewer was asked it.
type pollCall[C Client] struct {
	cancel    context.CancelFunc
	abstained bool
	gone      bool // the client has left
	late      sync.Once
}

// reply holds the answer of one viewer.
type reply[C Client] struct {
	Answer[C]
	to *pollCall[C]
}

// Poll asks the viewers a question, without waiting. The caller calls Wait.
func (v *Viewers[C]) Poll(ctx context.Context, ballot Ballot[C]) *Poll[C] {
	ctx, end := context.WithCancel(ctx)
	p := &Poll[C]{viewers: v, ballot: ballot, ctx: ctx, end: end,
		replies: make(chan reply[C]), calls: make(map[*viewer[C]]*pollCall[C])}
	if !ballot.OfTurn {
		v.mu.Lock()
		v.open[p] = true
		v.mu.Unlock()
	}
	all, _ := v.current()
	p.askOthers(all)
	return p
}

// Stop notes that c has stopped the turns of the session, or the program if c is zero. An open
// question is dismissed when c says so, or if c was not asked; the others are not asked any longer.
// Stop reports whether there was one.
func (v *Viewers[C]) Stop(c C) (asks bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := range v.open {
		if !p.stopped {
			p.stopped, p.stoppedBy, asks = true, c, true
		}
	}
	v.changeLocked()
	return asks
}

// askOthers asks the viewers that were not asked and can be asked now.
func (p *Poll[C]) askOthers(all []*viewer[C]) {
	for _, w := range all {
		if p.calls[w] != nil || !w.isAt(live) {
			continue
		}
		ctx, cancel := during(p.ctx, w.tenure)
		call := &pollCall[C]{cancel: cancel}
		p.calls[w] = call
		said := func(result backend.Raw, err error) reply[C] {
			return reply[C]{Answer[C]{result, err, w.client}, call}
		}
		work := p.ballot.Send(ctx, w.client, func(result backend.Raw, err error) {
			if p.ctx.Err() != nil {
				p.answeredLate(said(result, err))
			}
		})
		p.waiting.Go(func() {
			r := said(work())
			cancel()
			select {
			case p.replies <- r:
			case <-p.ctx.Done():
				p.answeredLate(r)
			}
		})
	}
}

// answeredLate handles a response that came when the question had been answered. A client that has
// stopped the turn itself knows why its answer has no effect.
func (p *Poll[C]) answeredLate(r reply[C]) {
	p.viewers.mu.Lock()
	stops := p.stopped && p.stoppedBy == r.By
	p.viewers.mu.Unlock()
	if !stops && r.By.Answers() && p.decides(r) {
		r.to.late.Do(func() { p.ballot.Late(r.By, r.Result) })
	}
}

// Wait waits for the answer, until the context of Poll ends. While there is no viewer, it waits for
// one.
func (p *Poll[C]) Wait() Answer[C] {
	defer p.close()
	for {
		all, changed := p.viewers.current()
		stopped := p.isStopped()
		if !stopped {
			p.askOthers(all)
		}
		if answer, ok := p.settled(all, stopped); ok {
			return answer
		}
		select {
		case r := <-p.replies:
			switch {
			case p.ctx.Err() != nil:
				p.answeredLate(r)
			case !r.By.Answers():
			case p.decides(r):
				return r.Answer
			default:
				p.abstains(r)
			}
		case <-changed:
		case <-p.ctx.Done():
			return Answer[C]{Err: context.Cause(p.ctx)}
		}
	}
}

// decides reports whether a reply is an answer.
func (p *Poll[C]) decides(r reply[C]) bool { return r.Err == nil && p.ballot.Decides(r.By, r.Result) }

// isStopped reports whether a client has stopped the turn. The questions to other clients end then.
func (p *Poll[C]) isStopped() bool {
	p.viewers.mu.Lock()
	stopped, by := p.stopped, p.stoppedBy
	p.viewers.mu.Unlock()
	if stopped {
		for w, call := range p.calls {
			if w.client != by {
				call.abstained = true
				call.cancel()
			}
		}
	}
	return stopped
}

// abstains notes that a client does not answer.
func (p *Poll[C]) abstains(r reply[C]) {
	r.to.abstained = true
	r.to.gone = errors.Is(r.Err, jsonrpc.ErrClosed) || errors.Is(r.Err, errDetached)
	if !r.to.gone && (r.Err == nil || p.last.Result == nil) {
		p.last = r.Answer
	}
}

// settled returns the answer if nobody is left who may give another one.
func (p *Poll[C]) settled(all []*viewer[C], stopped bool) (answer Answer[C], ok bool) {
	abstained := 0
	for _, w := range all {
		switch call := p.calls[w]; {
		case !w.client.Answers(), call == nil && stopped:
		case call == nil || !call.abstained:
			return answer, false
		case !call.gone:
			abstained++
		}
	}
	switch {
	case stopped && p.last.Result == nil:
		return Answer[C]{Result: p.ballot.Cancelled}, true
	case stopped || abstained > 0:
		return p.last, true
	}
	return answer, false
}

// close ends the question in all clients.
func (p *Poll[C]) close() {
	p.viewers.mu.Lock()
	delete(p.viewers.open, p)
	p.viewers.mu.Unlock()
	p.end()
	p.waiting.Wait()
}

// errDetached ends a wait for a client that no longer has the session.
var errDetached = errors.New("the session is no longer open in this client")

// during returns a context that also ends with a tenure. The caller calls cancel.
func during(ctx, tenure context.Context) (limited context.Context, cancel func()) {
	limited, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(tenure, func() { end(errDetached) })
	return limited, func() {
		stop()
		end(nil)
	}
}

// Call sends a request to the first viewer that accepts takes, with send. It fails if there is
// none, or if that leaves before it answers.
func (v *Viewers[C]) Call(
	ctx context.Context, accepts func(C) error, send func(ctx context.Context, to C) backend.Work,
) backend.Work {
	err := errDetached
	all, _ := v.current()
	for _, w := range all {
		if refused := accepts(w.client); refused != nil {
			err = refused
			continue
		}
		ctx, cancel := during(ctx, w.tenure)
		work := send(ctx, w.client)
		return func() (backend.Raw, error) {
			defer cancel()
			return work()
		}
	}
	return jsonrpc.Fail(err)
}
