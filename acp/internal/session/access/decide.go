// Package access decides about what a backend asks of the client and the user, and serves files
// that the client must not open.
//
//   - decide.go: what is done with a request.
//   - paths.go: the paths in a request must be in the roots.
//   - action.go: what a request does, or a question says that the agent will do.
//   - ask.go: what the user is asked about a request, and which rule they may choose.
//   - files.go: files outside the roots that the user allows to read, and those of a restricted
//     backend.
package access

import (
	"context"
	"errors"
	"log/slog"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options describe a session and its backend.
type Options struct {
	Session string // its id
	Agent   string // the name of the agent's profile, "" if it has none
	// Restricted means that the backend runs in a sandbox: files are served here, not by the client.
	Restricted bool

	Roots   *workspace.Workspace // the session's
	Guarded *workspace.Workspace // the same, in which the user's rules hold
	Open    workspace.Options    // with which other folders are opened
	Permits *permission.Permits
	Servers []mcpclient.Config
	Catalog func() *discovery.Catalog // the latest one of the roots

	Tasks *tasks.Group
	Log   *slog.Logger
}

// Access is the access of a session's backend to files, commands and the user. It is safe for
// concurrent use.
type Access struct {
	Options
	outside chan struct{} // holds one value while a file outside is asked about or read
}

// New returns the access with these options.
func New(o Options) *Access { return &Access{Options: o, outside: make(chan struct{}, 1)} }

// Request is a message of a backend to the client, or a question of acp-agent to the user.
type Request struct {
	From   backend.Sender
	Method string
	Params backend.Raw
	CanAsk bool // the session is open, and the message waits for an answer

	Question *question.Question // nil unless the request is one; has its method and params
	Known    permission.Call    // what the agent has said before of the tool call
	Mode     string             // the id of the session's, "" if it is not known
	InTurn   func() bool        // a turn is running now; nil unless the agent asks
}

// Act is what is done with a request.
type Act string

const (
	// A message:
	Pass        Act = "carry it out"
	Refuse      Act = "let it fail" // a question too, if one of its paths is wrong
	Confirm     Act = "carry it out if the user confirms it"
	ReadOutside Act = "read the file if the user allows it"

	// A question:
	Allow  Act = "answer with yes"
	Reject Act = "answer with no"
	Ask    Act = "put it to the viewers, who may choose a rule"
	Poll   Act = "put it to the viewers, and leave no trace in the conversation"
)

// Decision says what is done with a request.
type Decision struct {
	Act Act
	Err error // of Refuse, Reject and ReadOutside
	// Verdict is that of the rules, or zero if they were not compared with the request.
	Verdict permission.Verdict
}

// Decide decides about a request. It changes nothing but this: an action that the user has just
// allowed passes once. A message is compared with the rules that deny something or ask about it, a
// question also with those that allow something.
func (a *Access) Decide(ctx context.Context, r Request) Decision {
	if err := a.checkPaths(ctx, r); err != nil {
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		if isOutside && r.CanAsk && r.Method == protocol.ReadTextFile && r.From.Child == "" &&
			!r.From.Decided {
			return Decision{Act: ReadOutside, Err: err}
		}
		return Decision{Act: Refuse, Err: err}
	}
	if r.Question != nil {
		return a.decideQuestion(ctx, r)
	}
	rules, err := a.Permits.Restrictions()
	if r.From.Decided || err == nil && rules.Ask == nil && rules.Deny == nil {
		return Decision{Act: Pass}
	}
	action, err := a.requested(r)
	switch {
	case err != nil:
		return Decision{Act: Refuse, Err: r.refusal(err)}
	case action.Verb == "" && action.Files == nil: // it is about something else
		return Decision{Act: Pass}
	}
	err = a.Permits.Check(action)
	rule, isRule := errors.AsType[*permission.RuleError](err)
	switch {
	case err == nil:
		return Decision{Act: Pass, Verdict: permission.Verdict{Action: action}}
	case !isRule:
		return Decision{Act: Refuse, Err: r.refusal(err)}
	case rule.Effect == permission.Ask && r.CanAsk:
		return Decision{Act: Confirm, Verdict: rule.Verdict}
	}
	return Decision{Act: Refuse, Verdict: rule.Verdict, Err: r.refusal(err)}
}

// refusal returns the error for the backend of a message that is refused because of err.
func (r Request) refusal(err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v", r.Method, err)
}

// decideQuestion decides whether the user is asked a question.
func (a *Access) decideQuestion(ctx context.Context, r Request) Decision {
	q := r.Question
	switch {
	case q.IsForm(), !r.CanAsk, r.From.Decided: // it is not about a tool call of the session
		return Decision{Act: Poll}
	case q.Own == nil && (!a.Permits.Decides() || q.Err != nil): // or it can be read in several ways
		return Decision{Act: Ask}
	case q.Own != nil && q.Own.Verb == "": // no rule can be about it
		return Decision{Act: Ask}
	}
	action, err := a.asked(ctx, r)
	if err != nil {
		return Decision{Act: Ask}
	}
	v, err := a.Permits.Decide(a.Roots, action)
	if err != nil {
		a.Log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", a.Session, "error", err)
	}
	switch {
	case v.Effect == permission.Deny:
		return Decision{Act: Reject, Verdict: v, Err: &permission.RuleError{Verdict: v}}
	case q.Own == nil && a.Permits.Configured == nil: // it asks as it would without acp-agent
		return Decision{Act: Ask}
	case v.Effect == permission.Allow:
		return Decision{Act: Allow, Verdict: v}
	case err != nil:
		return Decision{Act: Ask}
	}
	return Decision{Act: Ask, Verdict: v}
}

// asked returns what a question is about.
func (a *Access) asked(ctx context.Context, r Request) (action permission.Action, err error) {
	if r.Question.Own != nil {
		action = *r.Question.Own
	} else if action, err = a.announced(ctx, r); err != nil {
		return action, err
	}
	if action.Where.Root == "" {
		action.Where.Root = a.Roots.Root(0).Real.String()
	}
	return action, nil
}
