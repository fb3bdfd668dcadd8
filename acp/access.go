package acp

import (
	"context"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Questions about the files and commands that an agent uses through the client. Package access
// knows which of them to ask.

// ruled returns the work for a request that a rule is about, which pass sends to the client. The
// user is asked if the rule says so, unless the agent has just done so.
func (a asker) ruled(
	ctx context.Context, method string, params backend.Raw, refusal error, pass func() backend.Work,
) backend.Work {
	refused, byRule := errors.AsType[*permission.RuleError](refusal)
	_, live := a.host.gate.Live()
	if !byRule || refused.Effect == permission.Deny || !live {
		if byRule && live {
			a.observeRule(method, refused.Verdict)
		}
		return jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v",
			method, refusal))
	}
	return func() (backend.Raw, error) {
		if err := a.askByRule(ctx, method, refused); err != nil {
			return nil, err
		}
		if err := a.check(ctx, method, params); err != nil {
			return nil, err
		}
		now, err := a.host.access.Requested(a.Sender, method, params)
		if err != nil || !now.IsPartOf(refused.Action) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"acp-agent refused %s: its file was replaced while the user was asked", method)
		}
		return pass()()
	}
}

// askByRule asks the user about a request of the agent, as a rule wants, and returns nil if they
// allow it.
func (a asker) askByRule(
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
	err := a.askOnce(ctx, refused.Action, backend.NewToolCall("rule", kind,
		verb+text.Code(text.Line(what, text.MaxArgument)),
		refused.Reason()+":\n\n"+text.Block("", shown)))
	if errors.Is(err, backend.ErrRejected) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the user did not allow it", method)
	}
	return err
}

// askToRead asks the user whether the file outside at the real path may be read, and returns nil if
// so. path is what the backend asked for, and refusal the error if the client cannot ask.
func (a asker) askToRead(ctx context.Context, path, real string, refusal error) error {
	about := "The agent wants to read a file outside the folders of this session:\n\n" +
		text.Block("", text.Printable(real))
	if path != real {
		about += "\n\nIt asked for it by this path, which leads there:\n\n" +
			text.Block("", text.Printable(path))
	}
	err := a.askOnce(ctx, permission.At(a.host.access.Guarded).OutsideRead(path, real),
		backend.NewToolCall("read", sdk.ToolKindRead, "Read "+text.Code(real), about))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled):
		return err
	case errors.Is(err, backend.ErrRejected):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"the user did not allow reading %s, which is outside the session's folders", path)
	case err != nil:
		return refusal
	}
	return nil
}

// askOnce asks the user about an action that the agent has not asked about, and shows it as a tool
// call.
func (a asker) askOnce(
	ctx context.Context, action permission.Action, call backend.ToolCall,
) error {
	_, err := backend.AskShown(ctx, a.host, a.host, backend.Question{Call: call,
		Once: "Allow once", Reject: "Reject", Action: action})
	return err
}
