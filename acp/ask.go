package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// answer is the response to a question, and which client gave it. A rule, or what a rule makes of a
// client's response, may take its place.
type answer = turns.Answer[*connection]

// ask asks the user a question, unless a rule answers it, and returns a function that waits for the
// answer. The verdict is that of the rules. All questions come here, from
//
//   - asker.Call: those of the agent, and forms of MCP servers;
//   - host.Ask: those of acp-agent itself, such as whether a tool of an MCP server may be called,
//     and by asker.askOnce whether a message may be passed on.
//
// Only that of session.askBeforeTurn does not: whether to go on when a budget is used up.
func (a asker) ask(ctx context.Context, q question.Question) (permission.Verdict, func() answer) {
	s, live := a.host.gate.Live()
	asked := access.Question{Question: q, From: a.from, CanAsk: live, InTurn: a.host.inTurn}
	if asked.IsRuled() && q.Own == nil {
		if err := a.addKnown(ctx, &asked); err != nil {
			return permission.Verdict{}, func() answer { return answer{Err: err} }
		}
	}
	v, err := a.host.access.DecideQuestion(ctx, asked)
	switch {
	case err != nil:
		return v, func() answer { return answer{Err: err} }
	case !asked.IsRuled():
		return v, a.poll(ctx, q)
	}
	switch v.Effect {
	case permission.Allow, permission.Deny:
		got := a.answerByRule(ctx, s, q, v)
		return v, func() answer { return got }
	default: // permission.Ask, or no verdict
		return v, a.askViewers(ctx, s, q, v)
	}
}

// addKnown adds to a question of the agent what is known of its tool call and of the session, and
// notes that the agent asks.
func (a asker) addKnown(ctx context.Context, q *access.Question) error {
	id := a.callOf(q.Question)
	return a.host.viewers.Shown.With(ctx, func(now *transcript.Shown) error {
		known, _ := a.host.viewers.Calls.Get(id)
		a.host.viewers.Calls.Change(id, func(c *calls.Call) { c.Asked = true })
		q.Known, q.Mode = known.Announced(), now.Mode
		return nil
	})
}

// askViewers asks the viewers a question about which rules do not decide. Some agents mention a
// tool call only in the question, and say nothing more about one that was rejected. Such a call is
// recorded from the question, with what came of it.
func (a asker) askViewers(
	ctx context.Context, s *session, q question.Question, v permission.Verdict,
) func() answer {
	id, begun := a.callOf(q), time.Now()
	relabels := func(to *connection) bool { return to.clientCapabilities().relabels }
	known, _ := a.host.viewers.Calls.Get(id)
	offer := a.host.access.Offer(q, v,
		slices.ContainsFunc(a.host.viewers.Clients(), relabels), known.Shown)
	var wait func() answer
	isNew, err := s.transcript.Ask(ctx, id, q.Announce(id, ""),
		func() { wait = a.poll(ctx, offer.Question) })
	if err != nil {
		return func() answer { return answer{Err: err} }
	}
	return func() answer {
		got := wait()
		option, chosen := offer.Chosen(got.Result)
		cmp.Or(got.By, s.adapter.connection).observe(AnswerEvent{Session: s.id,
			Title: q.Call.Title, Choice: option.Kind, Duration: time.Since(begun)})
		if isNew && (!chosen || option.Refuses()) {
			s.transcript.RecordRejected(ctx, id, got.By)
		}
		got.Result = a.host.access.Answer(offer, got.Result)
		return got
	}
}

// callOf identifies the tool call that a question is about.
func (a asker) callOf(q question.Question) calls.Key {
	return calls.Key{Subagent: a.from.Subagent, ID: q.Call.ID}
}

// answerByRule answers a question in s by a rule or the session's mode. If it was a rule, the
// viewers are shown the tool call with a mark.
func (a asker) answerByRule(
	ctx context.Context, s *session, q question.Question, v permission.Verdict,
) answer {
	if !v.Rule.Preset {
		a.observeRule(q.Call.Title, v)
		id := a.callOf(q)
		if err := s.transcript.ShowMarked(ctx, id, q.Call, v.Mark(),
			func(title string) backend.Update { return q.Announce(id, title) }); err != nil {
			return answer{Err: err}
		}
	}
	if v.Effect == permission.Allow {
		return answer{Result: q.Choosing(q.Once())}
	}
	return answer{Result: q.Choosing(q.Refusal())}
}

// observeRule logs, and tells the observer, that a rule decided about something that an agent does.
func (a asker) observeRule(title string, v permission.Verdict) {
	id, of := a.host.id, a.host.adapter
	of.log.Info("a rule decided about a request of the agent", "session", id, "title",
		text.Truncate(title, calls.MaxTitle), "verdict", v.Effect, "rule", v.Rule.String())
	choice := permission.AllowOnce
	if v.Effect == permission.Deny {
		choice = permission.RejectOnce
	}
	of.connection.observe(AnswerEvent{Session: id, Title: title, Choice: choice,
		Rule: v.Rule.String()})
}

// poll puts a question to all viewers. The returned function waits for the answer. The question
// ends in all clients with the answer or ctx, and with the turn.
func (a asker) poll(ctx context.Context, q question.Question) (wait func() answer) {
	v, id := a.host.viewers, rand.Text()
	q.Params = protocol.SetOurs(a.addressed(q.Method, q.Params), "question", strictjson.Text(id))
	a.host.adapter.connection.observe(QuestionEvent{a.host.id, true})
	watching, done := context.WithCancel(ctx)
	if s := a.host.queue.Active(); s != nil {
		s.watchLease(watching)
	}
	poll := v.Poll(ctx, turns.Ballot[*connection]{
		Send: func(
			ctx context.Context, to *connection, onResponse func(backend.Raw, error),
		) backend.Work {
			// It may not be the client for which the request was checked.
			if err := to.checkMethod(q.Method, q.Params); err != nil {
				return jsonrpc.Fail(err)
			}
			return to.CallFunc(ctx, q.Method, a.paramsFor(to, q), onResponse)
		},
		Decides: func(c *connection, result backend.Raw) bool {
			return c.peer.Role.asked(q).Decides(result)
		},
		OfTurn:    q.OfTurn,
		Late:      func(c *connection, result backend.Raw) { a.tellLate(c, q, result) },
		Cancelled: q.Cancelled(),
	})
	return func() answer {
		got := poll.Wait()
		done()
		a.host.adapter.connection.observe(QuestionEvent{a.host.id, false})
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
func (a asker) paramsFor(to *connection, q question.Question) backend.Raw {
	if q.Method != protocol.RequestPermission {
		return q.Params
	}
	params, when := to.peer.Role.asked(q).Params, to.occasionFrom(a.host.adapter)
	if known, _ := a.host.viewers.Calls.Get(a.callOf(q)); when == forAnother && known.Shown != nil {
		params = strictjson.Set(params, "toolCall",
			calls.Merge(known.Shown, strictjson.Find(params, "toolCall")))
	}
	return to.clientCapabilities().withoutContent(params, "toolCall", when)
}

// tellLate tells a client that its answer to a question came too late.
func (a asker) tellLate(c *connection, q question.Question, result backend.Raw) {
	session := a.host.viewers.Address
	a.host.adapter.tasks.Go(func() {
		c.tell(session, "\n\nYour answer came too late: the question had already been "+
			"answered or had ended.\n")
		if q.Method == protocol.RequestPermission {
			choice, _ := q.Chosen(result)
			c.observe(AnswerEvent{Session: session.ID, Title: q.Call.Title,
				Choice: choice.Kind, Late: true})
		}
	})
}

// summary returns what the other viewers are told of an answer to the question with this id.
func summary(id string, got answer) map[string]any {
	said := map[string]any{"id": id, "outcome": "none"}
	for _, path := range [][]string{{"outcome", "outcome"}, {"action"}} {
		if how := strictjson.Find(got.Result, path...); got.Err == nil && len(how) > 0 {
			said["outcome"] = how
		}
	}
	if option := strictjson.Find(got.Result, "outcome", "optionId"); len(option) > 0 {
		said["optionId"] = option
	}
	return said
}

// Ask implements [backend.Asker].
func (h *host) Ask(ctx context.Context, asked backend.Question) (backend.Answer, error) {
	own, known := asked.Action.(permission.Action)
	// Rules cannot be compared with another type, and may be about it.
	known = known || asked.Action == nil
	if asked.OnlyByRule && known && h.access.Permits.Check(own) == nil {
		return backend.Answer{}, nil
	}
	a, q := asker{host: h}, question.New(protocol.RequestPermission, asked.Params())
	q.Own = &own
	if err := a.admit(q.Method, q.Params); err != nil {
		return asked.Answer(ctx, nil, err)
	}
	v, wait := a.ask(ctx, q)
	if v.Effect == permission.Deny {
		return backend.Answer{}, &permission.RuleError{Verdict: v}
	}
	got := wait()
	answer, err := asked.Answer(ctx, got.Result, got.Err)
	if answer.Always && own.Verb == permission.Run {
		h.access.Permits.AllowExactly(own)
	}
	return answer, err
}

// askBeforeTurn asks a question that no rule answers. It ends with ctx, the context of a turn whose
// prompt the agent did not get yet.
func (s *session) askBeforeTurn(
	ctx context.Context, asked backend.Question,
) (backend.Answer, error) {
	q := question.New(protocol.RequestPermission, asked.Params())
	q.OfTurn = true
	got := asker{host: s.host}.poll(ctx, q)()
	return asked.Answer(ctx, got.Result, got.Err)
}
