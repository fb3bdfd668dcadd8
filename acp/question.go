package acp

import (
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/internal/permission"
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

// as returns the question as a client with a role gets it: one that does not act can allow or
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

// saying returns the question with a text, if there is one, after what is known of its tool call,
// whose content it would replace otherwise.
func (q question) saying(about string, known json.RawMessage) question {
	call := strictjson.Find(q.params, "toolCall")
	content, ok := strictjson.Append(strictjson.Find(calls.Merge(known, call), "content"),
		backend.Encode(sdk.ToolContent(sdk.TextBlock(about))))
	if ok && about != "" {
		q.params = strictjson.SetAt(q.params, content, "toolCall", "content")
	}
	return q
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
