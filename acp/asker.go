package acp

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// asker passes messages of a backend on to the client, for a session or one of its children. It
// implements [backend.Client]. A message is first checked: the client must offer its method, its
// paths must be in the roots, and the user's rules about files and commands must allow it. Some
// that are refused are passed on nevertheless if the user allows that.
type asker struct {
	host *host
	backend.Sender
}

// Call implements [backend.Client].
func (a asker) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	action, refusal := a.check(ctx, method, params)
	if refusal == nil {
		return a.pass(ctx, method, params, action)
	}
	if _, live := a.host.gate.Live(); !live { // nobody can be asked
		return jsonrpc.Fail(refusal)
	}
	_, isOutside := errors.AsType[*workspace.OutsideError](refusal)
	rule, isRule := errors.AsType[*permission.RuleError](refusal)
	switch {
	case isOutside && method == protocol.ReadTextFile && a.Child == "" && !a.Decided:
		return func() (backend.Raw, error) {
			return a.host.access.ReadOutside(ctx, params, refusal,
				func(path, real string) error { return a.askToRead(ctx, path, real, refusal) })
		}
	case isRule && rule.Effect == permission.Ask:
		return func() (backend.Raw, error) {
			if err := a.confirm(ctx, method, params, rule); err != nil {
				return nil, err
			}
			return a.pass(ctx, method, params, action)()
		}
	case isRule:
		a.observeRule(method, rule.Verdict)
	}
	return jsonrpc.Fail(refusal)
}

// Notify implements [backend.Client].
func (a asker) Notify(ctx context.Context, method string, params backend.Raw) error {
	if _, refusal := a.check(ctx, method, params); refusal != nil {
		return refusal
	}
	if a.servesFiles(method) {
		return access.ErrNotServed(method)
	}
	a.host.viewers.notify(ctx, method, a.addressed(method, params))
	return nil
}

// check returns an error for the backend if a message may not be passed on. The
// *[workspace.OutsideError] or the *[permission.RuleError] that is the reason is in its tree.
// action describes the message, if there are rules.
func (a asker) check(
	ctx context.Context, method string, params backend.Raw,
) (action permission.Action, err error) {
	if err := a.admit(ctx, method, params); err != nil {
		return action, err
	}
	action, err = a.host.access.Check(a.Sender, method, params)
	if err != nil {
		err = alsoError{jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "acp-agent refused %s: %v",
			method, err), err}
	}
	return action, err
}

// admit returns an error if the backend may not send the client this message. Its paths must be in
// the session's roots, and in the child's.
func (a asker) admit(ctx context.Context, method string, params backend.Raw) error {
	h, addressed := a.host, params
	if h.gate.Phase() == gate.Closed {
		return backend.ErrClosed
	}
	if a.Child != "" {
		addressed = a.addressed(method, params)
	}
	if err := h.viewers.offers(method, addressed); err != nil {
		return err
	}
	if err := access.CheckPaths(h.access.Guarded, method, params); err != nil || a.Child == "" {
		return err
	}
	return a.inRoots(ctx, func(w *workspace.Workspace) error {
		return access.CheckPaths(w, method, params)
	})
}

// pass returns the work for a request that is allowed: a question is asked, a request for a file
// may be served here, and all others are sent at once.
func (a asker) pass(
	ctx context.Context, method string, params backend.Raw, action permission.Action,
) backend.Work {
	switch {
	case method == protocol.RequestPermission, method == protocol.ElicitationCreate:
		_, wait := a.ask(ctx, newQuestion(method, params))
		return func() (backend.Raw, error) {
			got := wait()
			return got.Result, got.Err
		}
	case a.servesFiles(method):
		return func() (backend.Raw, error) {
			return a.host.access.Serve(ctx, method, a.addressed(method, params), action)
		}
	}
	return a.host.viewers.call(ctx, method, a.addressed(method, params))
}

// servesFiles reports whether a message of the backend is about files that are served here.
func (a asker) servesFiles(method string) bool {
	return a.host.adapter.info().Restricted && strings.HasPrefix(method, protocol.FilePrefix)
}

// addressed returns the params of a message from the asker.
func (a asker) addressed(method string, params backend.Raw) backend.Raw {
	to := a.host.viewers.Address
	switch {
	case method == protocol.ElicitationComplete: // it names no session
		return params
	case a.Child == "":
		return to.On(params)
	case method == protocol.RequestPermission:
		params = protocol.MapToolCallReferences(params, "toolCall", to.External)
	}
	return to.Child(a.Child).On(params)
}

// inRoots calls do with the asker's roots. Those of a child that works in other roots than the
// session are open only meanwhile, because the child may replace them.
func (a asker) inRoots(ctx context.Context, do func(w *workspace.Workspace) error) error {
	h := a.host
	if a.Child == "" || a.Roots.IsZero() || a.Roots.Equal(h.unguarded.Roots()) {
		return do(h.unguarded)
	}
	known := h.unguarded.Opened()
	roots := a.Roots.Granting(func(dir workspace.Dir) workspace.Grant {
		grant, _ := workspace.GrantOf(workspace.Real(dir), known)
		return grant
	})
	w, err := workspace.Open(ctx, roots, h.adapter.options.Workspace)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the folders of the subagent: %v", err)
	}
	defer w.Close()
	return do(w)
}

// confirm asks the user about a request that a rule asks about, and returns nil if they allow it.
// The request must still be admitted then, and do no more than it did before.
func (a asker) confirm(
	ctx context.Context, method string, params backend.Raw, rule *permission.RuleError,
) error {
	if err := a.askByRule(ctx, method, rule); err != nil {
		return err
	}
	if err := a.admit(ctx, method, params); err != nil {
		return err
	}
	now, err := a.host.access.Requested(a.Sender, method, params)
	if err != nil || !now.IsPartOf(rule.Action) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"acp-agent refused %s: its file was replaced while the user was asked", method)
	}
	return nil
}

// askByRule asks the user about a request of the agent, as a rule wants, and returns nil if they
// allow it.
func (a asker) askByRule(ctx context.Context, method string, rule *permission.RuleError) error {
	what, kind, verb := rule.Action.Command.Line, sdk.ToolKindExecute, "Run "
	if rule.Action.Verb != permission.Run {
		what, kind, verb = rule.Action.Files[0].Path, sdk.ToolKindOther, "Use "
	}
	switch rule.Action.Verb {
	case permission.Read:
		kind, verb = sdk.ToolKindRead, "Read "
	case permission.Edit:
		kind, verb = sdk.ToolKindEdit, "Write "
	}
	about := text.Printable(what)
	for _, carried := range rule.Action.Hints.Texts { // such as variables
		about += "\n" + text.Printable(carried)
	}
	err := a.askOnce(ctx, rule.Action, backend.NewToolCall("rule", kind,
		verb+text.Code(text.Line(what, text.MaxArgument)),
		rule.Reason()+":\n\n"+text.Block("", about)))
	if errors.Is(err, backend.ErrRejected) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the user did not allow it", method)
	}
	return err
}

// askToRead asks the user whether the file outside at the real path may be read, and returns nil if
// so. path is the path in the request. refusal is returned if the client cannot ask.
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
func (a asker) askOnce(ctx context.Context, action permission.Action, call backend.ToolCall) error {
	_, err := backend.AskShown(ctx, a.host, a.host, backend.Question{Call: call,
		Once: "Allow once", Reject: "Reject", Action: action})
	return err
}

// sessionless implements [backend.Client] outside of sessions.
type sessionless struct{ adapter *adapter }

// Call implements [backend.Client].
func (c sessionless) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := c.check(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	return c.adapter.connection.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (c sessionless) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := c.check(method, params); err != nil {
		return err
	}
	return c.adapter.connection.Notify(ctx, method, params)
}

func (c sessionless) check(method string, params backend.Raw) error {
	for _, prefix := range []string{protocol.FilePrefix, protocol.TerminalPrefix,
		protocol.SessionPrefix} {
		if strings.HasPrefix(method, prefix) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s needs the id of an open session",
				method)
		}
	}
	if !c.adapter.grants.allowsBack(method) {
		return errNotGranted(RoleFull, method)
	}
	return c.adapter.connection.checkMethod(method, params)
}
