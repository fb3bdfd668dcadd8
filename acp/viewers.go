package acp

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// viewers are the clients that have a session open.
type viewers struct {
	*turns.Viewers[*connection]
	agent   *agent // runs the session; its backend knows the client of its connection
	address address
	opened  string               // part of the ids of questions, so that they differ
	polls   atomic.Int64         // how many questions there were
	shown   tasks.Guarded[shown] // used while an update is shown, so that all see the same order
	calls   calls.Calls
}

// answer is an answer to a question, and whose client gave it.
type answer = turns.Answer[*connection]

// newViewers returns the viewers of a session that a runs, of which first opens it.
func newViewers(a *agent, first *connection, id sessionstore.ID) *viewers {
	v := &viewers{agent: a, address: newAddress(id), opened: string(sessionstore.NewID()),
		shown: tasks.Guard[shown]()}
	o := turns.ViewerOptions[*connection]{Go: a.tasks.Go, Slow: v.dropped}
	if a.home.grace > 0 { // otherwise dropping the client would end the session
		o.Patience = a.options.tuning.SlowViewer
	}
	v.Viewers = turns.NewViewers(first, o)
	return v
}

// dropped tells a client that it was too slow. Turns go on without a viewer for a while.
func (v *viewers) dropped(c *connection) {
	v.agent.log.Info("a client is too slow to be shown the session", "session", v.address.id)
	c.tell(v.address, "\n\nThis window took too long to read, so the rest is not shown here. "+
		"Load the session again to see it.\n")
	if s := v.agent.home.session(v.address.id); s != nil {
		s.closeWhenIdle(c.graceNow())
	}
}

// notify sends the viewers a notification.
func (v *viewers) notify(ctx context.Context, method string, params backend.Raw) {
	v.Send(ctx, nil, len(params), func(to *connection) error {
		return to.TryNotify(method, params)
	})
}

// show sends the viewers but except an update of the session, if they take it. It is encoded once,
// and not recorded.
func (v *viewers) show(ctx context.Context, except *connection, u backend.Update) {
	params := v.address.params(u)
	v.Send(ctx, except, len(u.Raw), func(to *connection) error {
		return to.deliver(v.address, u, params, to.occasionFrom(v.agent), to.TryNotify)
	})
}

// mark shows the viewers but except an update that only says something in _meta, for clients that
// know it.
func (v *viewers) mark(ctx context.Context, except *connection, name string, value any) {
	says := json.RawMessage(`{"sessionUpdate":"session_info_update"}`)
	v.show(ctx, except, backend.NewUpdate(withMeta(says, name, backend.Encode(value))))
}

// firstTakesNotices reports whether the first viewer shows notices, so that warnings are not part
// of the conversation.
func (v *viewers) firstTakesNotices() bool {
	clients := v.Clients()
	return len(clients) > 0 && clients[0].clientCapabilities().declares(protocol.Notices)
}

// offers returns nil if a viewer offers a method of clients.
func (v *viewers) offers(method string, params backend.Raw) error {
	clients := v.Clients()
	if len(clients) == 0 {
		clients = []*connection{v.agent.connection}
	}
	var err error
	for _, c := range clients {
		if err = c.checkMethod(method, params); err == nil {
			return nil
		}
	}
	return err
}

// call sends a request to one viewer that offers it, or a question to all.
func (v *viewers) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if method == protocol.RequestPermission || method == protocol.ElicitationCreate {
		wait := v.poll(ctx, newQuestion(method, params))
		return func() (backend.Raw, error) {
			got := wait()
			return got.Result, got.Err
		}
	}
	return v.Call(ctx,
		func(to *connection) error { return to.checkMethod(method, params) },
		func(
			ctx context.Context, to *connection, onResponse func(backend.Raw, error),
		) backend.Work {
			return to.CallFunc(ctx, method, params, onResponse)
		})
}

// poll asks all viewers a question. The returned function waits for the answer.
func (v *viewers) poll(ctx context.Context, asked question) func() answer {
	id := v.opened + "-" + strconv.FormatInt(v.polls.Add(1), 10)
	asked.params = withMeta(asked.params, "question", strictjson.Text(id))
	v.agent.connection.observe(QuestionEvent{v.address.id, true})
	watching, done := context.WithCancel(ctx)
	if s := v.agent.home.session(v.address.id); s != nil {
		s.watchLease(watching)
	}
	q := v.Poll(ctx, turns.Ballot[*connection]{
		Send: func(
			ctx context.Context, to *connection, onResponse func(backend.Raw, error),
		) backend.Work {
			// It may not be the client for which the request was checked.
			if err := to.checkMethod(asked.method, asked.params); err != nil {
				return jsonrpc.Fail(err)
			}
			return to.CallFunc(ctx, asked.method, v.asked(to, asked), onResponse)
		},
		Decides: func(c *connection, result backend.Raw) bool {
			return asked.as(c.peer.Role).decides(result)
		},
		OfTurn:    asked.ofTurn,
		Late:      func(c *connection, result backend.Raw) { v.answeredLate(c, asked, result) },
		Cancelled: cancelledAnswer(asked.method),
	})
	return func() answer {
		got := q.Wait()
		done()
		v.agent.connection.observe(QuestionEvent{v.address.id, false})
		v.tellAnswer(ctx, id, got)
		return got
	}
}

// asked returns the params of a question to a viewer. One that may have come later than its tool
// call gets what the others were shown of that, too.
func (v *viewers) asked(to *connection, q question) backend.Raw {
	if q.method != protocol.RequestPermission {
		return q.params
	}
	params, when := q.as(to.peer.Role).params, to.occasionFrom(v.agent)
	if known, _ := v.calls.Get(q.key()); when == forAnother && known.Shown != nil {
		params = strictjson.Set(params, "toolCall",
			calls.Merge(known.Shown, strictjson.Find(params, "toolCall")))
	}
	return to.clientCapabilities().withoutContent(params, "toolCall", when)
}

// decides reports whether the result of a question is an answer. A client that cancels a dialog
// because another one has taken its place gives none.
func (q question) decides(result backend.Raw) bool {
	if q.method == protocol.RequestPermission {
		_, ok := q.Chosen(result)
		return ok
	}
	action := strictjson.FindText(result, "action")
	return action == "accept" || action == "decline"
}

// cancelledAnswer returns the result of a question that the user cancelled with the turn.
func cancelledAnswer(method string) backend.Raw {
	if method == protocol.RequestPermission {
		return backend.Raw(`{"outcome":{"outcome":"cancelled"}}`)
	}
	return backend.Raw(`{"action":"cancel"}`)
}

// tellAnswer tells the viewers that did not answer a question how it was answered.
func (v *viewers) tellAnswer(ctx context.Context, id string, got answer) {
	if v.Others(got.By) == 0 {
		return
	}
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	v.mark(ctx, got.By, "question", outcomeOf(id, got))
}

// questionOutcome says how a question was answered.
type questionOutcome struct {
	ID       string          `json:"id"`
	Outcome  json.RawMessage `json:"outcome"`
	OptionID json.RawMessage `json:"optionId,omitempty"`
}

func outcomeOf(id string, got answer) questionOutcome {
	o := questionOutcome{ID: id, Outcome: strictjson.Text("none")}
	for _, path := range [][]string{{"outcome", "outcome"}, {"action"}} {
		if said := strictjson.Find(got.Result, path...); got.Err == nil && len(said) > 0 {
			o.Outcome = said
		}
	}
	o.OptionID = strictjson.Find(got.Result, "outcome", "optionId")
	return o
}

// answeredLate tells a client that its answer to a question came too late.
func (v *viewers) answeredLate(c *connection, asked question, result backend.Raw) {
	v.agent.tasks.Go(func() {
		c.tell(v.address, "\n\nYour answer came too late: the question had already been answered "+
			"or had ended.\n")
		if asked.method == protocol.RequestPermission {
			choice, _ := asked.Chosen(result)
			c.observe(AnswerEvent{Session: v.address.id, Title: asked.Call.Title,
				Choice: choice.Kind, Late: true})
		}
	})
}

// tell tells the client something about a session, even if much waits for it.
func (c *connection) tell(session address, message string) {
	// An error means that the connection has ended.
	_ = c.deliver(session, backend.Warning(backend.Text(message)), nil, forAnother, c.ForceNotify)
}

// withMeta returns an object with a member of _meta.acp-agent.
func withMeta(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return strictjson.SetAt(object, value, "_meta", "acp-agent", name)
}
