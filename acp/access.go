package acp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Deny and ask rules hold for the session's files and commands, not only for questions about them.
//
//   - Backends and the scans of the roots use a workspace with [permission.Permits.Guard].
//   - checkRules decides about what an agent does through the client: files and terminals. For an
//     ask rule the user is asked, unless the agent has just done so.

// Permits implements [backend.Host].
func (s *session) Permits() *permission.Permits { return s.permits }

// checkRules returns what a backend wants to do through the client, if there are rules, and a
// *[permission.RuleError] if one is about it.
func (a asker) checkRules(
	method string, params backend.Raw,
) (action permission.Action, err error) {
	s := a.session
	rules, err := s.permits.Restrictions()
	if a.Decided || err == nil && rules.Ask == nil && rules.Deny == nil {
		return action, nil
	}
	if action, err = a.requested(method, params); err != nil {
		return action, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, err)
	}
	if action.Verb == "" && action.Files == nil { // it is about something else
		return action, nil
	}
	return action, s.permits.Check(action)
}

// requested returns what a request to the client does to files or runs, the zero action for others.
// The verb of a method for files that is not known is "".
func (a asker) requested(
	method string, params backend.Raw,
) (action permission.Action, err error) {
	s := a.session
	if a.Made != nil {
		params = a.Made
	}
	switch method {
	case protocol.TerminalCreate:
		line, dir, err := commandOf(params)
		if err != nil {
			return action, err
		}
		dir = cmp.Or(dir, s.guarded.Roots().Cwd().String())
		action, _ = permission.At(s.guarded).Command(line, dir)
		return action, permission.At(s.guarded).Carry(&action, params)
	case protocol.ReadTextFile:
		action.Verb = permission.Read
	case protocol.WriteTextFile:
		action.Verb = permission.Edit
	default:
		if !strings.HasPrefix(method, protocol.FilePrefix) {
			return action, nil
		}
	}
	path, _, err := pathMember(params, "path")
	place := permission.At(s.guarded)
	for _, p := range spellings(path) {
		action.Files = append(action.Files, place.Access(action.Verb, p).Files...)
	}
	return action, err
}

// commandOf returns the command line of the params of terminal/create, and the folder that it runs
// in, "" if they name none. Some agents send a whole line as the command, others its words.
func commandOf(params backend.Raw) (line, dir string, err error) {
	line, _, err = pathMember(params, "command")
	if err != nil {
		return "", "", err
	}
	if dir, _, err = pathMember(params, "cwd"); err != nil {
		return "", "", err
	}
	field, err := onlyMember(params, "args")
	if err != nil || !field.Present() || field.IsNull() {
		return line, dir, err
	}
	args, wrong := field.Texts()
	for _, arg := range args {
		line += " " + text.ShellWord(arg)
	}
	return line, dir, strictjson.Refuse(wrong...)
}

// ruled returns the work for a request that a rule is about, which pass sends to the client. The
// user is asked if the rule says so.
func (a asker) ruled(
	ctx context.Context, method string, params backend.Raw, refusal error, pass func() backend.Work,
) backend.Work {
	refused, byRule := errors.AsType[*permission.RuleError](refusal)
	s := a.session
	live := s.gate.Phase() == gate.Live
	if !byRule || refused.Effect == permission.Deny || !live {
		if byRule && live {
			s.observeRule(method, permission.Verdict{Effect: refused.Effect, Rule: refused.Rule})
		}
		return jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v",
			method, refusal))
	}
	return func() (backend.Raw, error) {
		if err := s.askByRule(ctx, method, refused); err != nil {
			return nil, err
		}
		if err := a.check(ctx, method, params); err != nil {
			return nil, err
		}
		now, err := a.requested(method, params)
		if err != nil || !now.IsPartOf(refused.Action) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"acp-agent refused %s: its file was replaced while the user was asked", method)
		}
		return pass()()
	}
}

// askByRule asks the user about a request of the agent, as a rule wants, and returns nil if they
// allow it.
func (s *session) askByRule(
	ctx context.Context, method string, refused *permission.RuleError,
) error {
	what, kind, verb := refused.Action.Command.Line, sdk.ToolKindExecute, "Run "
	if refused.Action.Verb != permission.Run {
		what, kind, verb = refused.Action.Files[0].Path, sdk.ToolKindOther, "Use "
	}
	switch refused.Action.Verb {
	case permission.Read:
		kind, verb = sdk.ToolKindRead, "Read "
	case permission.Edit:
		kind, verb = sdk.ToolKindEdit, "Write "
	}
	shown := text.Printable(what)
	for _, carried := range refused.Action.Hints.Texts { // such as variables
		shown += "\n" + text.Printable(carried)
	}
	_, err := backend.AskShown(ctx, s, s, backend.Question{
		Call: backend.NewToolCall("rule", kind, verb+text.Code(text.Line(what, text.MaxArgument)),
			refused.Why()+":\n\n"+text.Block("", shown)),
		Once: "Allow once", Reject: "Reject", Action: refused.Action,
	})
	if errors.Is(err, backend.ErrRejected) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the user did not allow it", method)
	}
	return err
}
