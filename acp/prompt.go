package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// commitTimeout bounds the commits that end a turn; they outlive its context.
const commitTimeout = 10 * time.Second

// acceptPrompt is the first half of session/prompt: it takes the prompt's place in the
// order, or refuses it (W7).
func (a *agent) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p, err := decodePrompt(r.Params)
	if err != nil {
		return failed(err)
	}
	t := newTurn(ctx)
	at, err := a.lanes.enterPrompt(p.id, t)
	if err != nil {
		t.answered()
		return failed(err)
	}
	r.BeforeResponse(t.decide)
	r.AfterResponse(func() {
		at.lane.forgetTurn(t)
		t.answered()
		at.leave()
	})
	return func() (json.RawMessage, error) { return a.prompt(at, t, p) }
}

// prompt runs a turn. It waits for the head of its lane, stores the prompt, gives the lane up once
// the runtime has it, and returns when all of the turn is durable.
func (a *agent) prompt(at *place, t *turn, p promptParams) (json.RawMessage, error) {
	if err := a.initialized(t.ctx); err != nil {
		return nil, err
	}
	if err := at.wait(t.ctx); err != nil {
		return nil, err
	}
	s, err := a.beginTurn(at.lane, t, p)
	if err != nil {
		return nil, asWire(err)
	}
	updates := &turnUpdates{session: s}
	o := outcome{err: errNeverStarted}
	defer func() { s.commitTurn(t, o) }() // a panic leaves no turn open
	s.host.refresh(t.ctx)
	o = t.await(a, func() (backend.Raw, error) {
		defer at.leave() // also after a panic
		work := t.handOver(s, p.rest, updates)
		at.leave()
		if work == nil {
			return nil, errNeverStarted
		}
		return work()
	})
	t.over()
	updates.end()
	return s.answer(t, &o)
}

// errNeverStarted stands for the outcome of a turn that the runtime did not get or did not finish.
var errNeverStarted = errors.New("the turn did not run")

// beginTurn makes t the lane's running turn and stores its start.
func (a *agent) beginTurn(l *lane, t *turn, p promptParams) (*session, error) {
	if before := l.running(); before != nil {
		if before.inTheWay() {
			return nil, errTurnInProgress(l.id)
		}
		if err := before.wait(t.ctx); err != nil {
			return nil, err
		}
	}
	s := l.active()
	if s == nil {
		return nil, a.whyInactive(t.ctx, l.id)
	}
	if err := s.begin(t.ctx, p); err != nil {
		return nil, err
	}
	l.setRunning(t)
	return s, nil
}

// whyInactive tells a stored session that nobody opened here from one that does not exist (A28).
func (a *agent) whyInactive(ctx context.Context, id sessionstore.ID) error {
	if _, err := a.options.Store.Get(ctx, id); err != nil {
		return asWire(err)
	}
	return errNotActive(id)
}

// begin durably records the start of a turn before the runtime acts (S8), and shows the title
// that the session's first prompt gives it (A29).
func (s *session) begin(ctx context.Context, p promptParams) error {
	s.record.renew(ctx)
	if err := s.record.recorder().Flush(ctx); err != nil {
		return err
	}
	title := ""
	if !s.titled.Load() {
		title = p.title()
	}
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.BeginTurn(ctx, l, sessionstore.Turn{Prompt: p.updates(), Title: title})
	})
	if err != nil {
		s.failed(err)
		return err
	}
	if title == "" {
		return nil
	}
	s.titled.Store(true)
	if err := s.show(ctx, titleUpdate(title)); err != nil {
		s.agent.log.Debug("title not shown", "session", s.id, "error", err) // the turn has begun, and ends like any other
	}
	return nil
}

// answer commits what the turn said and makes the response of it.
func (s *session) answer(t *turn, o *outcome) (json.RawMessage, error) {
	if o.err == nil {
		o.result, o.err = withStopReason(o.result)
	}
	if t.isCancelled() {
		*o = outcome{result: cancelledResult(o.result)}
	} else if cause := t.cause(); cause != nil {
		o.err = cause
	}
	if err := s.commitTurn(t, *o); err != nil && o.err == nil && !t.isCancelled() {
		o.err = err // which may have ended the turn meanwhile, so its cause tells nothing
	}
	return o.result, asWire(o.err)
}

// commitTurn records the end of t once.
func (s *session) commitTurn(t *turn, o outcome) error {
	if !t.commit() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	err := s.record.recorder().Flush(ctx)
	if err == nil {
		err = s.write(func(l sessionstore.Lease) error {
			return s.agent.options.Store.EndTurn(ctx, l, stopReason(o))
		})
	}
	if err != nil {
		s.open = true
		s.failed(err)
	}
	return err
}

// decide makes the response of a turn that has ended, or did not begin: that of a cancelled one, if it was cancelled
// before its response is written (W5).
func (t *turn) decide(result json.RawMessage, err error) (json.RawMessage, error) {
	if t.settle() {
		return cancelledResult(result), nil
	}
	return result, err
}

// cancelledResult is result with the stop reason of a cancelled turn.
func cancelledResult(result json.RawMessage) json.RawMessage {
	if len(result) == 0 {
		return json.RawMessage(`{"stopReason":"cancelled"}`)
	}
	return put(result, "stopReason", json.RawMessage(`"cancelled"`))
}

// withStopReason refuses a runtime's result that is not a prompt response.
func withStopReason(result backend.Raw) (backend.Raw, error) {
	if reason := stopReason(outcome{result: result}); reason == "" {
		return nil, fmt.Errorf("the agent answered the prompt without a stop reason")
	}
	return result, nil
}

// stopReason is the stop reason in an outcome, "" if it is an error.
func stopReason(o outcome) sessionstore.StopReason {
	if o.err != nil {
		return ""
	}
	object, err := strictjson.ParseObject(o.result)
	if err != nil {
		return ""
	}
	raw, _ := object.Get("stopReason")
	var reason sessionstore.StopReason
	if json.Unmarshal(raw, &reason) != nil {
		return ""
	}
	return reason
}
