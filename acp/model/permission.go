package model

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// rules returns what the mode allows and denies.
func (m mode) rules() permission.Rules {
	switch m {
	case acceptEdits:
		return permission.Rules{Allow: []permission.Rule{permission.AllEdits}}
	case readOnly, planning:
		return permission.Rules{Deny: []permission.Rule{permission.AllEdits, permission.AllRuns}}
	}
	return permission.Rules{}
}

var (
	errRejected = errors.New("the user has rejected it. Do not try to get the same done in " +
		"another way; go on without it, or stop and ask the user what to do instead")
	errModeReads = errors.New("the user has chosen a mode that does not allow changes")
)

// reasonForUser returns what the user is told about a call that they have not allowed, "" for other
// errors.
func reasonForUser(err error) string {
	switch {
	case errors.Is(err, errRejected):
		return "You rejected it, so it was not done."
	case errors.As(err, new(*permission.RuleError)):
		return "A rule in your configuration denies it, so it was not done."
	case errors.Is(err, errModeReads):
		return "The session's mode allows no changes, so it was not done."
	}
	return ""
}

// mayChange reports whether the model may change files and run commands at all.
func (m mode) mayChange() bool { return m.rules().Deny == nil }

// permit asks whether a change may be made: rules decide, such as those of the mode, or the user.
// The change that is shown is the one that is made.
func (c *modelCall) permit(ctx context.Context, change tools.Change) error {
	c.permitted = change.New
	shown := describeChange(change)
	host := c.turn.host
	why := permission.WhyAsk(ctx, host.Workspace(), host.Catalog(), change)
	action := permission.At(host.Workspace()).Changing(change, why)
	refused, byRule := errors.AsType[*permission.RuleError](host.Workspace().Check(change.Access()))
	if byRule && refused.Effect == permission.Deny {
		action = refused.Action
	}
	allEdits := "Allow all edits in this session"
	switch {
	case change.Kind != tools.Write && change.Kind != tools.CreateDirectory:
		action.Unclear, allEdits = "files are deleted or moved", ""
	case why != "":
		note := "You are asked even in the mode Accept edits: " + why + "."
		shown.Content = append(shown.Content, sdk.ToolContent(sdk.TextBlock(note)))
		allEdits = ""
	}
	always, err := c.askUser(ctx, backend.Question{Call: shown, Always: allEdits}, action)
	if err == nil && always {
		err = c.turn.setModeTo(ctx, acceptEdits)
	}
	if err != nil {
		return err
	}
	c.phase = callRunning
	shown.Status = sdk.Ptr(sdk.ToolCallStatusInProgress)
	return c.commit(ctx, shown) // so that the change is known even if the program is killed now
}

// checkAccess refuses what a rule denies, and asks the user where a rule says so. About changes
// they have been asked.
func (c *modelCall) checkAccess(ctx context.Context, a workspace.Access, before error) error {
	rule, asks := permission.Asks(before)
	switch {
	case before == nil, asks && (a.Kind != workspace.Read || c.mayRead[a.At]):
		return nil
	case !asks:
		return fmt.Errorf("%w. Do not try to get the same done in another way", before)
	}
	path := a.At.Path()
	title := "Read " + text.Argument(path)
	shown := backend.ToolCall{Content: backend.TextContent(
		"Your rule " + text.Code(rule.Rule.String()) + " asks before this file is read:\n\n" +
			text.Block("", text.Printable(path)))}
	shown.Title = &title
	if _, err := c.askUser(ctx, backend.Question{Call: shown}, rule.Action); err != nil {
		return err
	}
	c.mayRead[a.At] = true
	return nil
}

// noteMade notes a write that has been made in another text than was shown, to show it when the
// call ends.
func (c *modelCall) noteMade(change tools.Change) {
	if change.Kind == tools.Write && change.New != c.permitted {
		c.made = describeChange(change).Content
	}
}

// askUser asks the user whether to do what q.Call shows, unless a rule decides about the action.
func (c *modelCall) askUser(
	ctx context.Context, q backend.Question, action permission.Action,
) (always bool, err error) {
	set, _ := c.turn.current() // the user may have changed the mode since the step began
	action.Mode = set.Mode.rules()
	q.Once, q.Reject, q.Action = "Allow", "Reject", action
	q.Call.ToolCallId, q.Call.Kind, q.Call.RawInput = sdk.ToolCallId(c.ID), &c.kind, c.rawInput()
	answer, err := c.turn.host.Ask(ctx, q)
	switch denied, byRule := errors.AsType[*permission.RuleError](err); {
	case byRule && denied.Rule.Preset:
		err = errModeReads
	case byRule:
		err = fmt.Errorf("%w. Do not try to get the same done in another way", denied)
	case errors.Is(err, backend.ErrRejected):
		err = errRejected
	}
	return answer.Always, err
}

// describeChange returns a planned change as the user sees it before it is made: the resolved
// paths, their roots and the difference.
func describeChange(c tools.Change) backend.ToolCall {
	path := c.Ref.Path()
	title := inFolder(c.Ref)
	shown := backend.ToolCall{Content: []any{}}
	shown.Locations = backend.Locations(path, c.FirstLine())
	switch c.Kind {
	case tools.Write:
		title = "Write " + title + c.SideEffects()
		shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, c.New))
	case tools.CreateDirectory:
		title = "Create directory " + title + c.SideEffects()
	case tools.Delete:
		title = "Delete " + c.What + " " + title
		if c.Old != nil {
			shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, ""))
		}
	case tools.Move:
		to := inFolder(c.To)
		if c.To.Root() == c.Ref.Root() {
			to = text.Path(c.To.Rel())
		}
		title = "Move " + c.What + " " + title + " to " + to + c.SideEffects()
		shown.Locations = append(shown.Locations, backend.Locations(c.To.Path(), 0)...)
	}
	shown.Title = &title
	return shown
}

// inFolder says where something is: its path in its root, and the root.
func inFolder(at workspace.Ref) string {
	return text.Path(at.Rel()) + " in folder " + text.Path(at.Root().Dir.String())
}
