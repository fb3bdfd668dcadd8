package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The turns of a remote client outlive its connection: the connection's agent goes on, with the
// other viewers of the session or without any, until the turns end or the grace has passed.

// lasting reports whether turns outlive the connection.
func (a *agent) lasting() bool { return a.grace > 0 }

// leave takes from's client, whose connection has ended, from the viewers of all sessions.
func (p *principal) leave(from *agent) {
	for _, a := range p.all() {
		for _, s := range a.queues.Active() {
			a.keep(s, s.host.viewers.Leave(from), from.graceNow())
		}
	}
}

// graceNow returns how long turns continue if the client disconnects now.
func (a *agent) graceNow() time.Duration {
	if a.serving.Err() != nil {
		return 0
	}
	return a.grace
}

// keepIfLeft keeps s if from's client has left while it was opening s.
func (s *session) keepIfLeft(from *agent) {
	if !s.agent.lasting() {
		return
	}
	if from.HasLeft() {
		s.host.viewers.Leave(from)
	}
	s.agent.keep(s, s.host.viewers.Alone(), from.graceNow())
}

// keep waits up to the given time for the turns of s to end, then closes s, which has lost its last
// viewer. It stops if a client opens s and so closes back. It does nothing if back is nil: s still
// has a viewer.
func (a *agent) keep(s *session, back <-chan struct{}, during time.Duration) {
	if back == nil {
		return
	}
	a.tasks.Go(func() {
		grace := time.After(during)
		for over := during == 0; !a.closeUnviewed(s, over); {
			running := s.queue.Unanswered()
			if len(running) == 0 { // the last one has just ended
				continue
			}
			select {
			case <-running[0].Done():
			case <-back:
				return
			case <-a.base.Done():
				return
			case <-grace:
				over = true
			}
		}
	})
}

// closeUnviewed closes s once earlier requests are served, unless a client has opened it. If a turn
// is still running, closeUnviewed ends it once the grace has passed; before that it leaves s open
// and reports false.
func (a *agent) closeUnviewed(s *session, over bool) bool {
	at := a.queues.Ticket(s.id, turns.Lifecycle)
	defer at.Release()
	if at.Acquire(a.base) != nil || at.Queue.Active() != s || s.host.viewers.Alone() == nil {
		return true
	}
	if !over && len(at.Queue.Unanswered()) > 0 {
		return false
	}
	if at.Queue.EndTurns(a.base, backend.ErrCancelled) == nil {
		a.closeSession(a.base, s, nil)
	}
	return true
}

// lastingTurn is a turn that may outlive the connection over which its prompt came.
type lastingTurn struct {
	*turns.Turn
	agent  *agent
	from   *agent // whose client sent the prompt
	at     *ticket
	finish func() // is called when the turn has ended

	left    bool // nobody waits for the response
	decided bool
}

// promptLasting returns the work for the prompt of t, which from's client sent and which may
// outlive its connection. ctx is the request's context; leave ends the turn's context; finish is
// called when the turn has ended.
func (a *agent) promptLasting(
	ctx context.Context, r *jsonrpc.Request, at *ticket, t *turns.Turn, p promptParams,
	leave context.CancelCauseFunc, finish func(),
) jsonrpc.Work {
	l := &lastingTurn{Turn: t, agent: a, from: p.from, at: at, finish: finish}
	var ended outcome
	// The work ends before the functions below are called.
	r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
		if !l.left && !l.decided {
			result, err = t.Decide(result, err)
		}
		ended = outcome{result, err}
		return result, err
	})
	r.AfterResponse(func() {
		if !l.left && !l.decided {
			l.end(ended)
		}
	})
	return func() (json.RawMessage, error) {
		done := make(chan outcome, 1)
		a.tasks.Go(func() {
			o := outcome{err: tasks.ErrPanicked}
			defer func() { done <- o }()
			o.result, o.err = a.prompt(at, t, p)
		})
		select {
		case o := <-done:
			return l.decide(ctx, o)
		case <-ctx.Done():
		}
		if p.from.serving.Err() != nil && !l.hasOthers() {
			leave(jsonrpc.ErrClosed)
		} else if t.Cause() == nil {
			l.left = true
			a.tasks.Go(func() {
				o := <-done
				o.result, o.err = t.Decide(o.result, o.err)
				l.end(o)
			})
			return nil, jsonrpc.ErrClosed
		}
		o := <-done
		return o.result, o.err
	}
}

// viewers returns the viewers of the turn's session, or nil if it is closed.
func (l *lastingTurn) viewers() *viewers {
	if s := l.at.Queue.Active(); s != nil {
		return s.host.viewers
	}
	return nil
}

func (l *lastingTurn) hasOthers() bool {
	v := l.viewers()
	return v != nil && v.Others(l.from) > 0
}

// decide returns the response. It is decided when it is sent, as that of any prompt, and the turn
// ends then, unless the client does not read: nobody else waits for that.
func (l *lastingTurn) decide(ctx context.Context, o outcome) (json.RawMessage, error) {
	v := l.viewers()
	isBehind := v != nil && v.IsBehind(l.from)
	if !isBehind && !l.from.conn.IsFull() {
		return o.result, o.err
	}
	o.result, o.err = l.Decide(o.result, o.err)
	l.decided = true
	l.end(o)
	if isBehind {
		v.Settle(ctx, l.from)
	}
	return o.result, o.err
}

// end tells the viewers that get no response how the turn ended, and lets the next one begin.
func (l *lastingTurn) end(o outcome) {
	defer l.finish()
	s := l.at.Queue.Active()
	if s == nil || !l.hasOthers() {
		return
	}
	ended := map[string]any{"stopReason": stopReason(o)}
	if o.err != nil {
		ended = map[string]any{"error": o.err.Error()}
	}
	ctx, cancel := commitContext(l.agent.base)
	defer cancel()
	if s.beginUpdate(ctx) == nil {
		defer s.endUpdate()
		s.host.viewers.mark(ctx, l.from, map[string]any{"turn": ended})
	}
}
