package access

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Asker asks the user a question about what the agent does, and returns nil if they allow it. The
// question has no labels.
type Asker func(ctx context.Context, q backend.Question) error

// Confirm asks the user about a message that a rule asks about, and returns nil if they allow it.
// Its paths must still be in the roots then, and it must do no more than it did before.
func (a *Access) Confirm(ctx context.Context, m Message, d Confirm, ask Asker) error {
	err := ask(ctx, questionBy(d.Verdict))
	switch {
	case errors.Is(err, backend.ErrRejected):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the user did not allow it", m.Method)
	case err != nil:
		return err
	}
	if err := a.checkPaths(ctx, m); err != nil {
		return err
	}
	now, err := a.requested(m)
	if err != nil || !now.IsPartOf(d.Action) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"acp-agent refused %s: its file was replaced while the user was asked", m.Method)
	}
	return nil
}

// questionBy returns the question about an action that a rule asks about.
func questionBy(v permission.Verdict) backend.Question {
	action := v.Action
	what, kind, verb := action.Command.Line, sdk.ToolKindExecute, "Run "
	if action.Verb != permission.Run {
		what, kind, verb = action.Files[0].Path, sdk.ToolKindOther, "Use "
	}
	switch action.Verb {
	case permission.Read:
		kind, verb = sdk.ToolKindRead, "Read "
	case permission.Edit:
		kind, verb = sdk.ToolKindEdit, "Write "
	}
	about := text.Printable(what)
	for _, carried := range action.Hints.Texts { // such as variables
		about += "\n" + text.Printable(carried)
	}
	why := v.Reason()
	return backend.Question{Action: action, Call: backend.NewToolCall("rule", kind,
		verb+text.Code(text.Line(what, text.MaxArgument)), why+":\n\n"+text.Block("", about))}
}

// askToRead asks the user whether the file outside at the real path may be read, and returns nil if
// so. path is the path in the message, which fails with d.Err if the client cannot ask.
func (a *Access) askToRead(ctx context.Context, path, real string, d ReadOutside, ask Asker) error {
	about := "The agent wants to read a file outside the folders of this session:\n\n" +
		text.Block("", text.Printable(real))
	if path != real {
		about += "\n\nIt asked for it by this path, which leads there:\n\n" +
			text.Block("", text.Printable(path))
	}
	err := ask(ctx, backend.Question{Action: permission.At(a.Guarded).OutsideRead(path, real),
		Call: backend.NewToolCall("read", sdk.ToolKindRead, "Read "+text.Code(real), about)})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled):
		return err
	case errors.Is(err, backend.ErrRejected):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"the user did not allow reading %s, which is outside the session's folders", path)
	case err != nil:
		return d.Err
	}
	return nil
}

// Offer is a question as it is put to the user.
type Offer struct {
	question.Question
	asked   question.Question
	verdict permission.Verdict
	rule    permission.Rule // that the answer "always" makes, or the zero Rule
}

// Offer returns a question that is put to the user because of v. If a rule can be made, it offers
// that in place of the asker's own "always", unless a client relabels the answers. It offers
// neither where a rule would not stop the question. shown is known of the tool call to the user.
func (a *Access) Offer(
	q question.Question, v permission.Verdict, relabels bool, shown json.RawMessage,
) Offer {
	o := Offer{Question: q, asked: q, verdict: v}
	switch {
	case v.Maybe:
		if options, ok := q.OnlyOnce(); ok {
			o.Question = q.With(options)
		}
	case v.Action.Verb != "" && v.Rule.String() == "" && !relabels:
		rule, isRule := a.Permits.Offer(v.Action)
		if options, ok := q.Offering(rule, v.Action); isRule && ok {
			o.Question, o.rule = q.With(options).Saying(rule.Explain(), shown), rule
		}
	}
	return o
}

// Answer returns the response to the asker for the result of a client, and remembers what that
// allows. An answer that was not offered to the client allows nothing.
func (a *Access) Answer(o Offer, result backend.Raw) backend.Raw {
	option, chosen := o.Chosen(result)
	_, isOption := o.asked.Chosen(result)
	if chosen && !option.Refuses() && o.asked.Own == nil && o.verdict.Rule.String() != "" {
		a.Permits.NoteAsked(o.verdict.Action)
	}
	switch {
	case option.Kind == permission.AllowAlways && o.rule.String() != "":
		err := a.Permits.Remember(o.rule, consent.Consent{Agent: a.Agent, By: a.Session,
			Title: text.Truncate(o.Call.Title, calls.MaxTitle)})
		if err != nil {
			a.Log.Warn("cannot remember what the user allows", "session", a.Session, "error", err)
		}
		return o.asked.Choosing(o.asked.Once()) // so that the asker remembers nothing itself
	case isOption && !chosen:
		return o.asked.Cancelled()
	}
	return result
}
