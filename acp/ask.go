package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// ask asks the user a question, unless a rule answers it, and returns a function that waits for the
// answer. All questions come here, from
//
//   - asker.pass: those of the agent, and forms of MCP servers;
//   - host.Ask: those of acp-agent itself, such as whether a tool of an MCP server may be called;
//   - asker.askOnce: whether a message may be passed on that a rule or the roots refuse;
//   - session.askBeforeTurn: whether to go on when a budget is used up.
//
// verdict has what the rules say. It is zero for questions that are only put to the viewers: forms,
// and those that come before the session is live or that the asker has Decided.
func (a asker) ask(
	ctx context.Context, q question,
) (verdict permission.Verdict, wait func() answer) {
	s, live := a.host.gate.Live()
	if !live || a.Decided || q.method != protocol.RequestPermission {
		return verdict, a.poll(ctx, q)
	}
	verdict = a.verdict(ctx, s, q)
	if verdict.Effect == permission.Allow || verdict.Effect == permission.Deny {
		got := a.answerByRule(ctx, s, q, verdict)
		return verdict, func() answer { return got }
	}
	return verdict, a.askViewers(ctx, s, q, verdict)
}

// askViewers asks the viewers a question about which rules do not decide. Some agents mention a
// tool call only in the question, and say nothing more about one that was rejected. Such a call is
// recorded from the question, with what came of it.
func (a asker) askViewers(
	ctx context.Context, s *session, q question, v permission.Verdict,
) func() answer {
	id, begun := a.callOf(q), time.Now()
	sent, offered := a.offer(q, v)
	var wait func() answer
	isNew, err := s.transcript.Ask(ctx, id, q.announce(id, ""),
		func() { wait = a.poll(ctx, sent) })
	if err != nil {
		return func() answer { return answer{Err: err} }
	}
	return func() answer {
		got := wait()
		option, chosen := sent.Chosen(got.Result)
		cmp.Or(got.By, s.adapter.connection).observe(AnswerEvent{Session: s.id,
			Title: q.Call.Title, Choice: option.Kind, Duration: time.Since(begun)})
		allows := got.Err == nil && chosen && !strings.HasPrefix(option.Kind, "reject")
		if isNew && !allows {
			s.transcript.RecordRejected(ctx, id, got.By)
		}
		if allows && q.own == nil && v.Rule.String() != "" {
			s.Permits().NoteAsked(v.Action)
		}
		_, isOption := q.Chosen(got.Result)
		switch {
		case option.Kind == permission.AllowAlways && offered.String() != "":
			a.remember(offered, q)
			got.Result = q.choosing(q.Once()) // so that the asker remembers nothing itself
		case isOption && !chosen: // it was not offered to the client
			got.Result = q.cancelled()
		}
		return got
	}
}

// callOf identifies the tool call that a question is about.
func (a asker) callOf(q question) calls.Key { return calls.Key{Child: a.Child, ID: q.Call.ID} }

// answerByRule answers a question in s by a rule or the session's mode. If it was a rule, the
// viewers are shown the tool call with a mark.
func (a asker) answerByRule(
	ctx context.Context, s *session, q question, v permission.Verdict,
) answer {
	if !v.Rule.Preset {
		a.observeRule(q.Call.Title, v)
		id := a.callOf(q)
		if err := s.transcript.ShowMarked(ctx, id, q.Call, v.Mark(),
			func(title string) backend.Update { return q.announce(id, title) }); err != nil {
			return answer{Err: err}
		}
	}
	if v.Effect == permission.Allow {
		return answer{Result: q.choosing(q.Once())}
	}
	return answer{Result: q.choosing(q.Refusal())}
}

// offer returns the question for the viewers. If a rule can be made, it offers that in place of the
// asker's own "always". It offers neither where a rule would not stop the question.
func (a asker) offer(q question, v permission.Verdict) (sent question, offered permission.Rule) {
	relabels := func(to *connection) bool { return to.clientCapabilities().relabels }
	switch {
	case v.Effect == "":
		return q, offered
	case v.Maybe:
		if options, ok := q.OnlyOnce(); ok {
			q = q.with(options)
		}
		return q, offered
	case v.Rule.String() != "" || slices.ContainsFunc(a.host.viewers.Clients(), relabels):
		return q, offered
	}
	rule, isRule := a.host.Permits().Offer(v.Action)
	if options, ok := q.Offering(rule, v.Action); isRule && ok {
		known, _ := a.host.viewers.Calls.Get(a.callOf(q))
		return q.with(options).saying(rule.Explain(), known.Shown), rule
	}
	return q, offered
}

// remember lets a rule hold from now on that the user has chosen as the answer to a question.
func (a asker) remember(r permission.Rule, q question) {
	h := a.host
	err := h.Permits().Remember(r, consent.Consent{Agent: h.adapter.info().Profile,
		By: string(h.id), Title: text.Truncate(q.Call.Title, calls.MaxTitle)})
	if err != nil {
		h.adapter.log.Warn("cannot remember what the user allows", "session", h.id, "error", err)
	}
}

// poll puts a question to all viewers. The returned function waits for the answer. The question
// ends in all clients with the answer or ctx, and with the turn.
func (a asker) poll(ctx context.Context, q question) (wait func() answer) {
	v, id := a.host.viewers, rand.Text()
	q.params = withMeta(a.addressed(q.method, q.params), "question", strictjson.Text(id))
	v.adapter.connection.observe(QuestionEvent{v.Address.ID, true})
	watching, done := context.WithCancel(ctx)
	if s := v.adapter.home.session(v.Address.ID); s != nil {
		s.watchLease(watching)
	}
	poll := v.Poll(ctx, turns.Ballot[*connection]{
		Send: func(
			ctx context.Context, to *connection, onResponse func(backend.Raw, error),
		) backend.Work {
			// It may not be the client for which the request was checked.
			if err := to.checkMethod(q.method, q.params); err != nil {
				return jsonrpc.Fail(err)
			}
			return to.CallFunc(ctx, q.method, a.paramsFor(to, q), onResponse)
		},
		Decides: func(c *connection, result backend.Raw) bool {
			return q.as(c.peer.Role).decides(result)
		},
		OfTurn:    q.ofTurn,
		Late:      func(c *connection, result backend.Raw) { a.tellLate(c, q, result) },
		Cancelled: q.cancelled(),
	})
	return func() answer {
		got := poll.Wait()
		done()
		v.adapter.connection.observe(QuestionEvent{v.Address.ID, false})
		if v.Others(got.By) > 0 {
			ctx, cancel := tasks.Commit(ctx)
			defer cancel()
			v.Mark(ctx, got.By, "question", summary(id, got))
		}
		return got
	}
}

// paramsFor returns the params of a question to one of the viewers. A viewer that may have come
// later than the tool call also gets what the others were shown of the call.
func (a asker) paramsFor(to *connection, q question) backend.Raw {
	if q.method != protocol.RequestPermission {
		return q.params
	}
	v := a.host.viewers
	params, when := q.as(to.peer.Role).params, to.occasionFrom(v.adapter)
	if known, _ := v.Calls.Get(a.callOf(q)); when == forAnother && known.Shown != nil {
		params = strictjson.Set(params, "toolCall",
			calls.Merge(known.Shown, strictjson.Find(params, "toolCall")))
	}
	return to.clientCapabilities().withoutContent(params, "toolCall", when)
}

// tellLate tells a client that its answer to a question came too late.
func (a asker) tellLate(c *connection, q question, result backend.Raw) {
	h := a.host
	h.adapter.tasks.Go(func() {
		c.tell(h.viewers.Address, "\n\nYour answer came too late: the question had already been "+
			"answered or had ended.\n")
		if q.method == protocol.RequestPermission {
			choice, _ := q.Chosen(result)
			c.observe(AnswerEvent{Session: h.viewers.Address.ID, Title: q.Call.Title,
				Choice: choice.Kind, Late: true})
		}
	})
}

// Ask implements [backend.Asker].
func (h *host) Ask(ctx context.Context, asked backend.Question) (backend.Answer, error) {
	a, q := asker{host: h}, newQuestion(protocol.RequestPermission, asked.Params())
	q.own = &asked.Action
	if err := a.admit(ctx, q.method, q.params); err != nil {
		return asked.Answer(ctx, nil, err)
	}
	verdict, wait := a.ask(ctx, q)
	if verdict.Effect == permission.Deny {
		return backend.Answer{}, &permission.RuleError{Verdict: verdict}
	}
	got := wait()
	return asked.Answer(ctx, got.Result, got.Err)
}

// askBeforeTurn asks a question that no rule answers. It ends with ctx, the context of a turn whose
// prompt the agent did not get yet.
func (s *session) askBeforeTurn(
	ctx context.Context, asked backend.Question,
) (backend.Answer, error) {
	q := newQuestion(protocol.RequestPermission, asked.Params())
	q.ofTurn = true
	_, wait := asker{s.host, backend.Sender{Decided: true}}.ask(ctx, q)
	got := wait()
	return asked.Answer(ctx, got.Result, got.Err)
}
