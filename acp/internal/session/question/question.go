// Package question has what depends on a question to the user alone, not on who is asked it.
package question

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

// Question is a question to the user, as a request that clients are sent: to allow something, or to
// fill in a form of an MCP server or an agent.
type Question struct {
	Method string
	Params backend.Raw
	// Request is read from Params, and Err says why they can be read in several ways. It is zero
	// for forms.
	permission.Request
	Err error
	// Own describes what acp-agent itself asks about, with a zero verb if no rule is about that. It
	// is nil for questions of the agent, which are about the action in Request.
	Own *permission.Action
	// OfTurn means that acp-agent asks before the agent gets the prompt of the turn, with whose
	// context the question ends.
	OfTurn bool
}

// New returns the question that a request asks.
func New(method string, params backend.Raw) Question {
	q := Question{Method: method, Params: params}
	if !q.IsForm() {
		q.Request, q.Err = permission.ParseRequest(params)
	}
	return q
}

// IsForm reports whether the question is a form, rather than whether something is allowed.
func (q Question) IsForm() bool { return q.Method != protocol.RequestPermission }

// Announce returns the tool call that a question is about as an update, with a title if it is not
// "".
func (q Question) Announce(of calls.Key, title string) backend.Update {
	call := strictjson.Find(q.Params, "toolCall")
	if title != "" {
		call = strictjson.Set(call, "title", strictjson.Text(title))
	}
	return of.Announce(call)
}

// Narrow returns the question for a client that does not act: it can allow or refuse once at
// most, and nothing unless it may answer.
func (q Question) Narrow(mayAnswer bool) Question {
	if q.IsForm() {
		return q
	}
	options := []permission.Option{}
	for _, o := range q.Options {
		if q.Err == nil && mayAnswer && o.ID != "" && strings.HasSuffix(o.Kind, "_once") {
			options = append(options, o)
		}
	}
	return q.With(options)
}

// With returns the question with other options.
func (q Question) With(options []permission.Option) Question {
	q.Options = options
	q.Params = strictjson.Set(q.Params, "options", backend.Encode(options))
	return q
}

// Saying returns the question with a text after the content that is known of its tool call. Without
// that content, the text would replace it. An empty text changes nothing.
func (q Question) Saying(about string, known json.RawMessage) Question {
	call := strictjson.Find(q.Params, "toolCall")
	content, ok := strictjson.Append(strictjson.Find(calls.Merge(known, call), "content"),
		backend.Encode(sdk.ToolContent(sdk.TextBlock(about))))
	if ok && about != "" {
		q.Params = strictjson.SetAt(q.Params, content, "toolCall", "content")
	}
	return q
}

// Decides reports whether the result of the question is an answer. A client that cancels a dialog
// because another dialog has taken its place gives no answer.
func (q Question) Decides(result backend.Raw) bool {
	if !q.IsForm() {
		_, ok := q.Chosen(result)
		return ok
	}
	action := strictjson.FindText(result, "action")
	return action == "accept" || action == "decline"
}

// Cancelled returns the result of the question if the user cancels it with the turn.
func (q Question) Cancelled() backend.Raw {
	if !q.IsForm() {
		return backend.Raw(`{"outcome":{"outcome":"cancelled"}}`)
	}
	return backend.Raw(`{"action":"cancel"}`)
}

// Choosing returns the response that chooses an option. Without one, such as to refuse with, the
// response says that the question was cancelled, and some agents then end the turn.
func (q Question) Choosing(o permission.Option, ok bool) backend.Raw {
	if !ok {
		return q.Cancelled()
	}
	return backend.Encode(sdk.RequestPermissionResponse{
		Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.ID))})
}
