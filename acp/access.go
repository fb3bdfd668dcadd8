package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Deny and ask rules hold for the session's files and commands, not only for questions about them.
//
//   - Backends and the scans of the roots use the workspace that guard returns.
//   - checkRules decides about what a backend does through the client: files and terminals. For an
//     ask rule the user is asked, unless the backend has just done so.

// guard returns w for everybody to whom the rules apply.
func (p *permits) guard(w *workspace.Workspace) *workspace.Workspace {
	rules, err := p.restrictions()
	if err != nil {
		return w.Checked(func(workspace.Access, error) error { return err })
	}
	return rules.Guard(w)
}

// restrictions returns the deny and ask rules, which hold as long as the session.
func (p *permits) restrictions() (rules permission.Rules, err error) {
	if p.Configured != nil {
		rules, err = p.Configured.Rules()
	}
	return permission.Rules{Ask: rules.Ask, Deny: rules.Deny}, err
}

// Restrictions implements [backend.Host].
func (h *host) Restrictions() (ask, deny []string) {
	if p := h.permits.Configured; p != nil {
		return p.Ask, p.Deny
	}
	return nil, nil
}

// checkRules returns what a backend wants to do through the client, if there are rules, and a
// *[permission.RuleError] if one is about it. Our own backends say which of their requests they have
// asked about.
func (h *host) checkRules(
	ctx context.Context, method string, params backend.Raw,
) (action permission.Action, err error) {
	rules, err := h.permits.restrictions()
	if _, own := permission.Asked(ctx); own || err == nil && rules.Ask == nil && rules.Deny == nil {
		return action, err
	}
	if action, err = h.requested(method, backend.Made(ctx, params)); err != nil {
		return action, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, err)
	}
	if action.Verb == "" && action.Files == nil { // it is about something else
		return action, nil
	}
	err = rules.Check(action)
	refused, ok := errors.AsType[*permission.RuleError](err)
	if ok && refused.Effect == permission.Ask && h.permits.takeAsked(action) {
		return action, nil
	}
	return action, err
}

// requested returns what a request to the client does to files or runs, the zero action for others.
// The verb of a method for files that is not known is "".
func (h *host) requested(method string, params backend.Raw) (action permission.Action, err error) {
	switch method {
	case protocol.TerminalCreate:
		line, dir, err := commandOf(params)
		if err != nil {
			return action, err
		}
		dir = cmp.Or(dir, h.workspace.Roots().Cwd().String())
		action, _ = permission.Command(h.workspace, line, dir)
		return action, nil
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
	place := permission.Place{Workspace: h.workspace}
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
func (h *host) ruled(
	ctx context.Context, method string, params backend.Raw, refusal error, pass func() backend.Work,
) backend.Work {
	refused, byRule := errors.AsType[*permission.RuleError](refusal)
	s := h.live()
	if !byRule || refused.Effect == permission.Deny || s == nil {
		if byRule && s != nil {
			s.agent.log.Info("a rule refused a request of the agent", "session", s.id,
				"method", method, "rule", refused.Rule.String())
			s.agent.observe(AnswerEvent{Session: s.id, Title: method,
				Choice: string(sdk.PermissionOptionKindRejectOnce), Rule: refused.Rule.String()})
		}
		return jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v",
			method, refusal))
	}
	return func() (backend.Raw, error) {
		if err := h.askByRule(ctx, method, refused); err != nil {
			return nil, err
		}
		if err := h.check(method, params); err != nil {
			return nil, err
		}
		now, err := h.requested(method, backend.Made(ctx, params))
		if err != nil || !isSame(now, refused.Action) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"acp-agent refused %s: its file was replaced while the user was asked", method)
		}
		return pass()()
	}
}

// askByRule asks the user about a request of the agent, as a rule wants, and returns nil if they
// allow it.
func (h *host) askByRule(ctx context.Context, method string, refused *permission.RuleError) error {
	what, kind := refused.Action.Line, sdk.ToolKindExecute
	verb := "Run "
	switch refused.Action.Verb {
	case permission.Read:
		what, kind, verb = refused.Action.Files[0].Path, sdk.ToolKindRead, "Read "
	case permission.Edit:
		what, kind, verb = refused.Action.Files[0].Path, sdk.ToolKindEdit, "Write "
	case "":
		what, kind, verb = refused.Action.Files[0].Path, sdk.ToolKindOther, "Use "
	}
	asks := " asks about this"
	if refused.May {
		asks = " may be about what this reads"
	}
	about := "Your rule " + text.Code(refused.Rule.String()) + asks + ":\n\n" +
		text.Block("", text.Printable(what))
	_, err := h.ask(permission.Asking(ctx, refused.Action), h, sdk.ToolCallUpdate{
		ToolCallId: backend.NewToolCallID("rule"),
		Title:      sdk.Ptr(verb + text.Code(text.Line(what, text.MaxArgument))),
		Kind:       &kind, Content: backend.TextContent(about),
	}, backend.Question{Once: "Allow once", Reject: "Reject"})
	if errors.Is(err, backend.ErrRejected) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the user did not allow it", method)
	}
	return err
}

// maxAsked is how many actions are remembered that the user has allowed once.
const maxAsked = 100

// noteAsked notes that the user has allowed an action as a rule wants: it is not asked about again
// when the agent does it through the client.
func (p *permits) noteAsked(a permission.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) < maxAsked {
		p.asked = append(p.asked, a)
	}
}

// forgetAsked forgets what was noted in the last turn.
func (p *permits) forgetAsked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = nil
}

// takeAsked reports whether the user has allowed an action, and forgets it.
func (p *permits) takeAsked(a permission.Action) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.asked, func(asked permission.Action) bool { return isSame(a, asked) })
	if i < 0 {
		return false
	}
	p.asked = slices.Delete(p.asked, i, i+1)
	return true
}

// isSame reports whether a does nothing that asked does not do: the same command with the same files,
// or the same to some of its files.
func isSame(a, asked permission.Action) bool {
	if a.Verb != asked.Verb || strings.TrimSpace(a.Line) != strings.TrimSpace(asked.Line) {
		return false
	}
	return !slices.ContainsFunc(a.Files, func(f permission.File) bool {
		return !slices.ContainsFunc(asked.Files, func(other permission.File) bool {
			return f.Real == other.Real && (f.Real != "" || a.Verb == permission.Run && f.Path == other.Path)
		})
	})
}
