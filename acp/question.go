package acp

import (
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// question is a question to the user, as a request that clients are sent: to allow something, or to
// fill in a form of an MCP server or an agent.
type question struct {
	method string
	params backend.Raw
	// Request is read from params, and err says why they can be read in several ways. It is zero
	// for forms.
	permission.Request
	err error
	// own describes what acp-agent itself asks about, with a zero verb if no rule is about that. It
	// is nil for questions of the agent, which are about the action in Request.
	own *permission.Action
	// ofTurn means that acp-agent asks before the agent gets the prompt of the turn, with whose
	// context the question ends.
	ofTurn bool
}

func newQuestion(method string, params backend.Raw) question {
	q := question{method: method, params: params}
	if method == protocol.RequestPermission {
		q.Request, q.err = permission.ParseRequest(params)
	}
	return q
}

// announce returns the tool call that a question is about as an update, with a title if it is not
// "".
func (q question) announce(of calls.Key, title string) backend.Update {
	call := strictjson.Find(q.params, "toolCall")
	if title != "" {
		call = strictjson.Set(call, "title", strictjson.Text(title))
	}
	return of.Announce(call)
}

// as returns the question as a client with a role gets it: a client that does not act can allow or
// refuse once at most.
func (q question) as(r Role) question {
	if r.has(toAct) || q.method != protocol.RequestPermission {
		return q
	}
	options := []permission.Option{}
	for _, o := range q.Options {
		if q.err == nil && r.has(toAnswer) && o.ID != "" && strings.HasSuffix(o.Kind, "_once") {
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

// answer is the response to a question, and which client gave it. A rule, or what a rule makes of a
// client's response, may take its place.
type answer = turns.Answer[*connection]

// choosing returns the response that chooses an option. Without one, such as to refuse with, the
// response says that the question was cancelled, and some agents then end the turn.
func (q question) choosing(o permission.Option, ok bool) backend.Raw {
	if !ok {
		return q.cancelled()
	}
	return backend.Encode(sdk.RequestPermissionResponse{
		Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.ID))})
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
