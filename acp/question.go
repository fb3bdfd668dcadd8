package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// question is a question to the user, as a client gets it.
type question struct {
	method string
	params backend.Raw
	// Request is read from params, and err says why they can be read in several ways. It is zero
	// for questions of MCP servers.
	permission.Request
	err   error
	child string // that asks, "" for the session itself
	// ofTurn means that the adapter asks before the agent gets the prompt of the turn.
	ofTurn bool
}

// key identifies the tool call that a question is about.
func (q question) key() calls.Key { return calls.Key{Child: q.child, ID: q.Call.ID} }

// announce returns the tool call that a question is about as an update, with a title if it is not
// "".
func (q question) announce(title string) backend.Update {
	call := strictjson.Find(q.params, "toolCall")
	if title != "" {
		call = strictjson.Set(call, "title", strictjson.Text(title))
	}
	return q.key().Announce(call)
}

func newQuestion(method string, params backend.Raw) question {
	q := question{method: method, params: params}
	if method == protocol.RequestPermission {
		q.Request, q.err = permission.ParseRequest(params)
	}
	return q
}

// as returns the question as a client with a role gets it: a client that does not act can allow or
// refuse once at most.
func (q question) as(r Role) question {
	if r.has(acts) || q.method != protocol.RequestPermission {
		return q
	}
	options := []permission.Option{}
	for _, o := range q.Options {
		if q.err == nil && r.has(answers) && o.ID != "" && strings.HasSuffix(o.Kind, "_once") {
			options = append(options, o)
		}
	}
	return q.with(options)
}

// with returns the question with other options.
func (q question) with(options []permission.Option) question {
	q.Options = options
	q.params = strictjson.Set(q.params, "options", backend.Encode(options))
	return q
}

// saying returns the question with a text after the content that is known of its tool call. Without
// that content, the text would replace it. An empty text changes nothing.
func (q question) saying(about string, known json.RawMessage) question {
	call := strictjson.Find(q.params, "toolCall")
	content, ok := strictjson.Append(strictjson.Find(calls.Merge(known, call), "content"),
		backend.Encode(sdk.ToolContent(sdk.TextBlock(about))))
	if ok && about != "" {
		q.params = strictjson.SetAt(q.params, content, "toolCall", "content")
	}
	return q
}

// poll asks all viewers the question. The returned function waits for the answer.
func (q question) poll(ctx context.Context, v *viewers) func() answer {
	id := rand.Text()
	q.params = withMeta(q.params, "question", strictjson.Text(id))
	v.adapter.connection.observe(QuestionEvent{v.address.id, true})
	watching, done := context.WithCancel(ctx)
	if s := v.adapter.home.session(v.address.id); s != nil {
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
			return to.CallFunc(ctx, q.method, q.paramsFor(to, v), onResponse)
		},
		Decides: func(c *connection, result backend.Raw) bool {
			return q.as(c.peer.Role).decides(result)
		},
		OfTurn:    q.ofTurn,
		Late:      func(c *connection, result backend.Raw) { q.answeredLate(c, v, result) },
		Cancelled: q.cancelled(),
	})
	return func() answer {
		got := poll.Wait()
		done()
		v.adapter.connection.observe(QuestionEvent{v.address.id, false})
		if v.Others(got.By) > 0 {
			ctx, cancel := tasks.Commit(ctx)
			defer cancel()
			v.mark(ctx, got.By, "question", outcomeOf(id, got))
		}
		return got
	}
}

// paramsFor returns the params of the question to one of the viewers. A viewer that may have come
// later than the tool call also gets what the others were shown of the call.
func (q question) paramsFor(to *connection, v *viewers) backend.Raw {
	if q.method != protocol.RequestPermission {
		return q.params
	}
	params, when := q.as(to.peer.Role).params, to.occasionFrom(v.adapter)
	if known, _ := v.calls.Get(q.key()); when == forAnother && known.Shown != nil {
		params = strictjson.Set(params, "toolCall",
			calls.Merge(known.Shown, strictjson.Find(params, "toolCall")))
	}
	return to.clientCapabilities().withoutContent(params, "toolCall", when)
}

// decides reports whether the result of the question is an answer. A client that cancels a dialog
// because another dialog has taken its place gives no answer.
func (q question) decides(result backend.Raw) bool {
	if q.method == protocol.RequestPermission {
		_, ok := q.Chosen(result)
		return ok
	}
	action := strictjson.FindText(result, "action")
	return action == "accept" || action == "decline"
}

// cancelled returns the result of the question if the user cancels it with the turn.
func (q question) cancelled() backend.Raw {
	if q.method == protocol.RequestPermission {
		return backend.Raw(`{"outcome":{"outcome":"cancelled"}}`)
	}
	return backend.Raw(`{"action":"cancel"}`)
}

// answeredLate tells a client that its answer to the question came too late.
func (q question) answeredLate(c *connection, v *viewers, result backend.Raw) {
	v.adapter.tasks.Go(func() {
		c.tell(v.address, "\n\nYour answer came too late: the question had already been answered "+
			"or had ended.\n")
		if q.method == protocol.RequestPermission {
			choice, _ := q.Chosen(result)
			c.observe(AnswerEvent{Session: v.address.id, Title: q.Call.Title,
				Choice: choice.Kind, Late: true})
		}
	})
}

// answer is an answer to a question, and whose client gave it.
type answer = turns.Answer[*connection]

// outcomeOf returns what the other viewers are told of an answer to the question with this id.
func outcomeOf(id string, got answer) map[string]any {
	outcome := map[string]any{"id": id, "outcome": "none"}
	for _, path := range [][]string{{"outcome", "outcome"}, {"action"}} {
		if said := strictjson.Find(got.Result, path...); got.Err == nil && len(said) > 0 {
			outcome["outcome"] = said
		}
	}
	if option := strictjson.Find(got.Result, "outcome", "optionId"); len(option) > 0 {
		outcome["optionId"] = option
	}
	return outcome
}

// resolution is the result of a question.
type resolution struct {
	answer                   // of a client; Result is nil if another one takes its place
	option permission.Option // that was chosen
	chosen bool
	denied error // by a rule
}

func (o resolution) allows() bool {
	return o.Err == nil && o.chosen && !strings.HasPrefix(o.option.Kind, "reject")
}

// result returns the response to a request of an agent. If the request has no option to refuse, the
// response says that it was cancelled, and some agents then end the turn.
func (o resolution) result() (backend.Raw, error) {
	if o.Err != nil || o.Result != nil {
		return o.Result, o.Err
	}
	response := sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
	if o.chosen {
		response.Outcome =
			sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.option.ID))
	}
	return backend.Encode(response), nil
}
