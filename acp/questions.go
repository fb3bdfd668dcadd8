package acp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// questions are what the backend of a session asks the user, and whatever else it sends to the
// client. They are the part of [backend.Host] that reaches the client: what a rule, the roots or
// the client's capabilities do not allow is not passed on.
//
//   - asker.go checks the messages.
//   - access.go asks about files and commands for which a rule wants that.
//   - permission.go finds the rule that is about what an agent wants to do.
//   - The methods here ask the user if no rule decides: Ask for acp-agent itself, whose questions
//     say what they are about ([backend.Question]), and requestPermission for an agent.
//   - tool_calls.go shows what a rule has decided, and records what only a question says.
type questions struct {
	*parts           // of the session
	session *session // that asks
}

// Permits implements [backend.Host].
func (q *questions) Permits() *permission.Permits { return q.access.Permits }

// Ask implements [backend.Host]. Until the session is live, its questions are not recorded, and no
// rule answers them.
func (q *questions) Ask(ctx context.Context, asked backend.Question) (backend.Answer, error) {
	a, request := asker{questions: q}, newQuestion(protocol.RequestPermission, asked.Params())
	if q.gate.Phase() != gate.Live || a.check(ctx, request.method, request.params) != nil {
		return asked.Ask(ctx, asker{q, backend.Sender{Decided: true}})
	}
	var r ruling
	if asked.Action.Verb != "" {
		r = q.rule(asked.Action)
	}
	got := a.decideOrAsk(ctx, request, r)()
	if got.denied != nil {
		return backend.Answer{}, got.denied
	}
	result, err := got.result()
	return asked.Answer(ctx, result, err)
}

// askBeforeTurn asks a question that no rule answers, and that ends with ctx: that of a turn whose
// prompt the agent did not get yet.
func (q *questions) askBeforeTurn(
	ctx context.Context, asked backend.Question,
) (backend.Answer, error) {
	const method = protocol.RequestPermission
	request := newQuestion(method, asker{questions: q}.addressed(method, asked.Params()))
	request.ofTurn = true
	got := request.poll(ctx, q.viewers)()
	return asked.Answer(ctx, got.Result, got.Err)
}

// requestPermission answers a request of an agent.
func (a asker) requestPermission(ctx context.Context, params backend.Raw) backend.Work {
	asked := newQuestion(protocol.RequestPermission, params)
	r := a.ruleRequest(ctx, asked)
	wait := a.decideOrAsk(ctx, asked, r)
	return func() (backend.Raw, error) {
		got := wait()
		if got.allows() && r.Effect == permission.Ask && r.Rule.String() != "" {
			a.questions.Permits().NoteAsked(r.action)
		}
		return got.result()
	}
}

// decideOrAsk asks the user a question, unless the ruling answers it. Some agents mention a tool
// call only there, and say nothing more about one that was rejected. Such a call is recorded from
// the question, with its outcome.
func (a asker) decideOrAsk(ctx context.Context, asked question, r ruling) func() resolution {
	asked.child = a.Child
	if r.Effect == permission.Allow || r.Effect == permission.Deny {
		return a.questions.decided(ctx, asked, r)
	}
	q := a.questions
	sent, offered := q.offer(asked, r)
	var wait func() answer
	begun, isNew := time.Now(), false
	err := q.viewers.shown.With(ctx, func(*shown) error {
		addressed := sent
		addressed.params = a.addressed(sent.method, sent.params)
		wait = addressed.poll(ctx, q.viewers)
		_, known := q.viewers.calls.Get(asked.key())
		if isNew = !known && asked.Call.ID != ""; isNew {
			q.recordCall(ctx, asked.announce(""))
		}
		return nil
	})
	if err != nil {
		return func() resolution { return resolution{answer: answer{Err: err}} }
	}
	return func() resolution {
		got := resolution{answer: wait()}
		got.option, got.chosen = sent.Chosen(got.Result)
		cmp.Or(got.By, q.agent.connection).observe(AnswerEvent{Session: q.id,
			Title: sent.Call.Title, Choice: got.option.Kind, Duration: time.Since(begun)})
		q.applyAlways(asked, offered, &got)
		if isNew && !got.allows() {
			q.recordRejected(ctx, asked.key(), got.By)
		}
		return got
	}
}

// decided answers a question by a rule or the session's mode. If it was a rule, the client is shown
// the tool call with a mark.
func (q *questions) decided(ctx context.Context, asked question, r ruling) func() resolution {
	var o resolution
	if r.Effect == permission.Allow {
		o.option, o.chosen = asked.Once()
	} else {
		o.option, o.chosen = asked.Refusal()
		o.denied = &permission.RuleError{Verdict: r.Verdict, Action: r.action}
	}
	if !r.Rule.Preset {
		q.observeRule(asked.Call.Title, r.Verdict)
		o.Err = q.showMarked(ctx, asked, r.Mark())
	}
	return func() resolution { return o }
}

// offer returns the question for the client. If a rule can be made, it offers that in place of the
// asker's own "always". It offers neither where a rule would not stop the question.
func (q *questions) offer(asked question, r ruling) (sent question, offered permission.Rule) {
	relabels := func(to *connection) bool { return to.clientCapabilities().relabels }
	switch {
	case r.Effect == "":
		return asked, offered
	case r.Again:
		if options, ok := asked.OnlyOnce(); ok {
			asked = asked.with(options)
		}
		return asked, offered
	case r.Rule.String() != "" || slices.ContainsFunc(q.viewers.Clients(), relabels):
		return asked, offered
	}
	rule, isRule := q.Permits().Offer(r.action)
	if options, ok := asked.Offering(rule, r.action); isRule && ok {
		known, _ := q.viewers.calls.Get(asked.key())
		return asked.with(options).saying(rule.Explain(), known.Shown), rule
	}
	return asked, offered
}

// applyAlways changes the answer of a client so that the asker understands it. If the client has
// chosen the offered rule, it holds from now on, and the asker is allowed the action once, so that
// it remembers nothing itself.
func (q *questions) applyAlways(asked question, offered permission.Rule, got *resolution) {
	if _, known := asked.Chosen(got.Result); known && !got.chosen { // it was not offered
		got.Result = nil
		return
	}
	if offered.String() == "" || got.option.Kind != permission.AllowAlways {
		return
	}
	id := q.id
	err := q.Permits().Remember(offered, consent.Consent{
		Agent: q.agent.info().Profile, By: string(id),
		Title: text.Truncate(asked.Call.Title, calls.MaxTitle),
	})
	if err != nil {
		q.agent.log.Warn("cannot remember what the user allows", "session", id, "error", err)
	}
	got.option, _ = asked.Once()
	got.Result = nil
}
