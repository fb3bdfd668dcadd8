package acp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// What the backend of a session asks the user:
//
//   - asker.go checks the messages: what a rule, the roots or the client's capabilities do not
//     allow is not passed on. It asks about files and commands for which a rule wants that.
//   - permission.go finds the rule that is about what an agent wants to do.
//   - The methods here ask the user if no rule decides: Ask for acp-agent itself, whose questions
//     say what they are about ([backend.Question]), and requestPermission for an agent.
//   - transcript.go shows what a rule has decided, and records what only a question says.

// Ask implements [backend.Asker]. Until the session is live, its questions are not recorded, and no
// rule answers them.
func (h *host) Ask(ctx context.Context, asked backend.Question) (backend.Answer, error) {
	a, request := asker{host: h}, newQuestion(protocol.RequestPermission, asked.Params())
	s, live := h.gate.Live()
	if !live || a.admit(ctx, request.method, request.params) != nil {
		return asked.Ask(ctx, asker{h, backend.Sender{Decided: true}})
	}
	var r ruling
	if asked.Action.Verb != "" {
		r = a.rule(asked.Action)
	}
	got := a.decideOrAsk(ctx, s, request, r)()
	if got.denied != nil {
		return backend.Answer{}, got.denied
	}
	result, err := got.result()
	return asked.Answer(ctx, result, err)
}

// askBeforeTurn asks a question that no rule answers. It ends with ctx, the context of a turn whose
// prompt the agent did not get yet.
func (s *session) askBeforeTurn(
	ctx context.Context, asked backend.Question,
) (backend.Answer, error) {
	const method = protocol.RequestPermission
	request := newQuestion(method, asker{host: s.host}.addressed(method, asked.Params()))
	request.ofTurn = true
	got := request.poll(ctx, s.viewers)()
	return asked.Answer(ctx, got.Result, got.Err)
}

// requestPermission answers a request of the agent in s.
func (a asker) requestPermission(ctx context.Context, s *session, params backend.Raw) backend.Work {
	asked := newQuestion(protocol.RequestPermission, params)
	r := a.ruleRequest(ctx, s, asked)
	wait := a.decideOrAsk(ctx, s, asked, r)
	return func() (backend.Raw, error) {
		got := wait()
		if got.allows() && r.Effect == permission.Ask && r.Rule.String() != "" {
			s.Permits().NoteAsked(r.action)
		}
		return got.result()
	}
}

// decideOrAsk asks the user a question in s, unless the ruling answers it. Some agents mention a
// tool call only there, and say nothing more about one that was rejected. Such a call is recorded
// from the question, with its outcome.
func (a asker) decideOrAsk(
	ctx context.Context, s *session, asked question, r ruling,
) func() resolution {
	asked.child = a.Child
	if r.Effect == permission.Allow || r.Effect == permission.Deny {
		return a.decided(ctx, s, asked, r)
	}
	sent, offered := a.offer(asked, r)
	var wait func() answer
	begun, isNew := time.Now(), false
	err := s.viewers.shown.With(ctx, func(*shown) error {
		addressed := sent
		addressed.params = a.addressed(sent.method, sent.params)
		wait = addressed.poll(ctx, s.viewers)
		_, known := s.viewers.calls.Get(asked.key())
		if isNew = !known && asked.Call.ID != ""; isNew {
			s.transcript.recordCallLocked(ctx, asked.announce(""))
		}
		return nil
	})
	if err != nil {
		return func() resolution { return resolution{answer: answer{Err: err}} }
	}
	return func() resolution {
		got := resolution{answer: wait()}
		got.option, got.chosen = sent.Chosen(got.Result)
		cmp.Or(got.By, s.adapter.connection).observe(AnswerEvent{Session: s.id,
			Title: sent.Call.Title, Choice: got.option.Kind, Duration: time.Since(begun)})
		a.applyAlways(asked, offered, &got)
		if isNew && !got.allows() {
			s.transcript.recordRejected(ctx, asked.key(), got.By)
		}
		return got
	}
}

// decided answers a question in s by a rule or the session's mode. If it was a rule, the client is
// shown the tool call with a mark.
func (a asker) decided(
	ctx context.Context, s *session, asked question, r ruling,
) func() resolution {
	var o resolution
	if r.Effect == permission.Allow {
		o.option, o.chosen = asked.Once()
	} else {
		o.option, o.chosen = asked.Refusal()
		o.denied = &permission.RuleError{Verdict: r.Verdict, Action: r.action}
	}
	if !r.Rule.Preset {
		a.observeRule(asked.Call.Title, r.Verdict)
		o.Err = s.transcript.showMarked(ctx, asked, r.Mark())
	}
	return func() resolution { return o }
}

// offer returns the question for the client. If a rule can be made, it offers that in place of the
// asker's own "always". It offers neither where a rule would not stop the question.
func (a asker) offer(asked question, r ruling) (sent question, offered permission.Rule) {
	relabels := func(to *connection) bool { return to.clientCapabilities().relabels }
	switch {
	case r.Effect == "":
		return asked, offered
	case r.Again:
		if options, ok := asked.OnlyOnce(); ok {
			asked = asked.with(options)
		}
		return asked, offered
	case r.Rule.String() != "" || slices.ContainsFunc(a.host.viewers.Clients(), relabels):
		return asked, offered
	}
	rule, isRule := a.host.Permits().Offer(r.action)
	if options, ok := asked.Offering(rule, r.action); isRule && ok {
		known, _ := a.host.viewers.calls.Get(asked.key())
		return asked.with(options).saying(rule.Explain(), known.Shown), rule
	}
	return asked, offered
}

// applyAlways changes the answer of a client so that the asker understands it. If the client has
// chosen the offered rule, it holds from now on, and the asker is allowed the action once, so that
// it remembers nothing itself.
func (a asker) applyAlways(asked question, offered permission.Rule, got *resolution) {
	if _, known := asked.Chosen(got.Result); known && !got.chosen { // it was not offered
		got.Result = nil
		return
	}
	if offered.String() == "" || got.option.Kind != permission.AllowAlways {
		return
	}
	h := a.host
	err := h.Permits().Remember(offered, consent.Consent{
		Agent: h.adapter.info().Profile, By: string(h.id),
		Title: text.Truncate(asked.Call.Title, calls.MaxTitle),
	})
	if err != nil {
		h.adapter.log.Warn("cannot remember what the user allows", "session", h.id, "error", err)
	}
	got.option, _ = asked.Once()
	got.Result = nil
}
