// Package access decides about what a backend asks of the client and the user, and serves files
// that the client must not open.
//
//   - decide.go: what is done with a message, and with a question.
//   - paths.go: the paths in a message must be in the roots.
//   - action.go: what a message does, or a question says that the agent will do.
//   - ask.go: what the user is asked about a message, and which rule a question offers them.
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
	// Restricted means that the backend runs in a sandbox: files are served here, not by the
	// client.
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

// Message is a message of a backend to the client, other than a question.
type Message struct {
	From   backend.Sender
	Method string
	Params backend.Raw
	CanAsk bool // the session is open, and the message waits for an answer
}

// MessageDecision says what is done with a message.
type MessageDecision interface{ ofMessage() }

// All decisions about a message.
type (
	// Pass carries it out. The action was compared with rules, unless it is zero.
	Pass struct{ permission.Action }
	// Confirm carries it out if the user confirms it. The verdict is that of the rule that asks.
	Confirm struct{ permission.Verdict }
	// ReadOutside reads the file if the user allows it. Err is returned if they cannot be asked.
	ReadOutside struct{ Err error }
	// Refuse lets it fail. The verdict is that of the rules, zero if they are not the reason.
	Refuse struct {
		Err error
		permission.Verdict
	}
)

func (Pass) ofMessage()        {}
func (Confirm) ofMessage()     {}
func (ReadOutside) ofMessage() {}
func (Refuse) ofMessage()      {}

// DecideMessage decides about a message by the rules that deny something or ask about it. It
// changes nothing but this: an action that the user has just allowed passes once. If nobody can be
// asked, the message passes or is refused.
func (a *Access) DecideMessage(ctx context.Context, m Message) MessageDecision {
	if err := a.checkPaths(ctx, m); err != nil {
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		if isOutside && m.CanAsk && m.Method == protocol.ReadTextFile && m.From.Subagent == "" &&
			!m.From.Decided {
			return ReadOutside{err}
		}
		return Refuse{Err: err}
	}
	rules, err := a.Permits.Restrictions()
	if m.From.Decided || err == nil && rules.Ask == nil && rules.Deny == nil {
		return Pass{}
	}
	action, err := a.requested(m)
	switch {
	case err != nil:
		return Refuse{Err: m.refusal(err)}
	case action.Verb == "" && action.Files == nil: // it is about something else
		return Pass{}
	}
	err = a.Permits.Check(action)
	rule, isRule := errors.AsType[*permission.RuleError](err)
	switch {
	case err == nil:
		return Pass{action}
	case !isRule:
		return Refuse{Err: m.refusal(err)}
	case rule.Effect == permission.Ask && m.CanAsk:
		return Confirm{rule.Verdict}
	}
	return Refuse{m.refusal(err), rule.Verdict}
}

// refusal returns the error for the backend of a message that is refused because of err.
func (m Message) refusal(err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v", m.Method, err)
}

// Question is a question to the user, and what is known where it is asked.
type Question struct {
	question.Question
	From   backend.Sender
	CanAsk bool            // the session is open
	InTurn func() bool     // a turn is running now
	Known  permission.Call // what the agent has said before of the tool call
	Mode   string          // of the session, by its id, "" if it is not known
}

// IsRuled reports whether rules may decide: the question is about a tool call of the session.
func (q Question) IsRuled() bool { return q.CanAsk && !q.From.Decided && !q.IsForm() }

// DecideQuestion returns the verdict of the rules about a question. If its effect is to ask, the
// user may choose a rule. If it is zero, they are asked, and may choose none. The error is that the
// folders of a subagent cannot be opened.
func (a *Access) DecideQuestion(ctx context.Context, q Question) (permission.Verdict, error) {
	none := permission.Verdict{}
	err := a.inRoots(ctx, q.From, func(*workspace.Workspace) error { return nil })
	switch {
	case err != nil, !q.IsRuled():
		return none, err
	case q.Own == nil && (!a.Permits.Decides() || q.Err != nil): // or it is read in several ways
		return none, nil
	case q.Own != nil && q.Own.Verb == "": // no rule can be about it
		return none, nil
	}
	action, err := a.asked(ctx, q)
	if err != nil {
		return none, nil
	}
	v, err := a.Permits.Decide(action)
	if err != nil {
		a.Log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", a.Session, "error", err)
	}
	switch {
	case v.Effect == permission.Deny:
		return v, nil
	case q.Own == nil && a.Permits.Configured == nil: // it asks as it would without acp-agent
		return none, nil
	case v.Effect == permission.Ask && err != nil:
		return none, nil
	}
	return v, nil
}

// asked returns what a question is about.
func (a *Access) asked(ctx context.Context, q Question) (action permission.Action, err error) {
	if q.Own != nil {
		action = *q.Own
	} else if action, err = a.announced(ctx, q); err != nil {
		return action, err
	}
	if action.Where.Root == "" {
		action.Where.Root = a.Roots.Root(0).Real.String()
	}
	return action, nil
}
