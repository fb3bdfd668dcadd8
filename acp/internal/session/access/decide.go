// Package access decides about what a backend asks of the client and the user, and serves files
// that the client must not open.
//
//   - decide.go: what becomes of a request, and why.
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

// Outcome says what becomes of a request.
type Outcome string

const (
	Pass   Outcome = "pass"   // it is carried out; a question is answered with yes
	Refuse Outcome = "refuse" // it fails; a question is answered with no
	Ask    Outcome = "ask"    // the user decides
)

// Reason says why a request has its outcome.
type Reason string

const (
	// ByRules means that rules were compared with the request, even if none of them decides.
	ByRules Reason = "the rules were compared with it"
	Unread  Reason = "the rules cannot be read"
	Unknown Reason = "what it does cannot be found out"

	BadPath Reason = "a path is not in the roots, or they cannot be opened"

	// Why a message is not compared with rules that allow something.
	Harmless Reason = "no deny or ask rule is about it"
	Outside  Reason = "it reads a file that is not in the roots, which the user may allow"

	// Why a question is not compared with rules.
	Unruled   Reason = "no rule can be about it"
	NoRules   Reason = "the user has no rules: the agent asks as it would without acp-agent"
	Ambiguous Reason = "the question can be read in several ways"
	// Those that are not about a tool call of the session leave no trace in the conversation.
	Form    Reason = "the question is a form"
	Opening Reason = "the session is being opened"
	Decided Reason = "the backend needs no rule"
)

// Decision says what becomes of a request, and why.
type Decision struct {
	Outcome Outcome
	Why     Reason
	Err     error              // of a request that is refused, or that is asked about as Outside
	Verdict permission.Verdict // of the rules, zero unless Why is ByRules or Harmless
}

// Decide decides about a request. It changes nothing but this: an action that the user has just
// allowed passes once. A message is compared with the rules that deny something or ask about it, a
// question also with those that allow something.
func (a *Access) Decide(ctx context.Context, r Request) Decision {
	if err := a.checkPaths(ctx, r); err != nil {
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		if isOutside && r.CanAsk && r.Method == protocol.ReadTextFile && r.From.Child == "" &&
			!r.From.Decided {
			return Decision{Outcome: Ask, Why: Outside, Err: err}
		}
		return Decision{Outcome: Refuse, Why: BadPath, Err: err}
	}
	if r.Question != nil {
		return a.decideQuestion(ctx, r)
	}
	rules, err := a.Permits.Restrictions()
	if r.From.Decided || err == nil && rules.Ask == nil && rules.Deny == nil {
		return Decision{Outcome: Pass, Why: Harmless}
	}
	action, err := a.requested(r)
	switch {
	case err != nil:
		return Decision{Outcome: Refuse, Why: Unknown, Err: r.refusal(err)}
	case action.Verb == "" && action.Files == nil: // it is about something else
		return Decision{Outcome: Pass, Why: Harmless}
	}
	err = a.Permits.Check(action)
	rule, isRule := errors.AsType[*permission.RuleError](err)
	switch {
	case err == nil:
		return Decision{Outcome: Pass, Why: Harmless, Verdict: permission.Verdict{Action: action}}
	case !isRule:
		return Decision{Outcome: Refuse, Why: Unread, Err: r.refusal(err)}
	case rule.Effect == permission.Ask && r.CanAsk:
		return Decision{Outcome: Ask, Why: ByRules, Verdict: rule.Verdict}
	}
	return Decision{Outcome: Refuse, Why: ByRules, Verdict: rule.Verdict, Err: r.refusal(err)}
}

// refusal returns the error for the backend of a message that is refused because of err.
func (r Request) refusal(err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v", r.Method, err)
}

// decideQuestion decides whether the user is asked a question.
func (a *Access) decideQuestion(ctx context.Context, r Request) Decision {
	action, why := a.subject(ctx, r)
	if why != ByRules {
		return Decision{Outcome: Ask, Why: why}
	}
	if action.Where.Root == "" {
		action.Where.Root = a.Roots.Root(0).Real.String()
	}
	v, err := a.Permits.Decide(a.Roots, action)
	if err != nil {
		a.Log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", a.Session, "error", err)
	}
	switch {
	case v.Effect == permission.Deny:
		return Decision{Outcome: Refuse, Why: ByRules, Verdict: v,
			Err: &permission.RuleError{Verdict: v}}
	case r.Question.Own == nil && a.Permits.Configured == nil:
		return Decision{Outcome: Ask, Why: NoRules}
	case v.Effect == permission.Allow:
		return Decision{Outcome: Pass, Why: ByRules, Verdict: v}
	case err != nil:
		return Decision{Outcome: Ask, Why: Unread}
	}
	return Decision{Outcome: Ask, Why: ByRules, Verdict: v}
}

// subject returns what a question is about, or why rules are not compared with that.
func (a *Access) subject(ctx context.Context, r Request) (action permission.Action, why Reason) {
	switch q := r.Question; {
	case q.IsForm():
		return action, Form
	case !r.CanAsk:
		return action, Opening
	case r.From.Decided:
		return action, Decided
	case q.Own != nil && q.Own.Verb == "":
		return action, Unruled
	case q.Own != nil:
		return *q.Own, ByRules
	case !a.Permits.Decides():
		return action, NoRules
	case q.Err != nil:
		return action, Ambiguous
	}
	action, err := a.announced(ctx, r)
	if err != nil {
		return action, Unknown
	}
	return action, ByRules
}
