package model

import (
	"context"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/filechange"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// mayChange reports whether the model may change files and run commands at all.
func (m mode) mayChange() bool { return m == ask || m == acceptEdits }

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
		return "You have rejected it, so it was not done."
	case errors.Is(err, errModeReads):
		return "The mode of the session allows no changes, so it was not done."
	}
	return ""
}

// permit decides about a change: it asks the user, unless the mode allows it. The change that is
// shown is the one that is made.
func (c *call) permit(ctx context.Context, change tools.Change) error {
	c.permitted = change.New
	shown := filechange.Describe(change, "Write")
	isEdit := change.Kind == tools.Write || change.Kind == tools.CreateDirectory
	host := c.turn.host
	if why := whyAsk(ctx, host.Workspace(), host.Catalog(), change); isEdit && why != "" {
		isEdit = false
		note := "This is asked even if you accept edits: " + why + "."
		shown.Content = append(shown.Content, sdk.ToolContent(sdk.TextBlock(note)))
	}
	allEdits := ""
	if isEdit {
		allEdits = "Allow all edits in this session"
	}
	set, _ := c.turn.current() // the user may have changed the mode since the step began
	switch {
	case !set.Mode.mayChange():
		return errModeReads
	case set.Mode == acceptEdits && isEdit:
	default:
		always, err := c.askUser(ctx, shown, allEdits)
		if err != nil {
			return err
		}
		if always {
			if err := c.turn.setModeTo(ctx, acceptEdits); err != nil {
				return err
			}
		}
	}
	c.began = true
	shown.Status = sdk.Ptr(sdk.ToolCallStatusInProgress)
	return c.commit(ctx, shown) // so that the change is known even if the program is killed now
}

// noteMade notes a write that has been made in another text than was shown, to show it when the
// call ends.
func (c *call) noteMade(change tools.Change) {
	if change.Kind == tools.Write && change.New != c.permitted {
		c.made = filechange.Describe(change, "Write").Content
	}
}

// askUser asks the user whether to do what is shown, as [backend.Question.Ask] does. allowAlways is
// the label of the answer that always allows it, "" for none.
func (c *call) askUser(
	ctx context.Context, shown backend.ToolCall, allowAlways string,
) (always bool, err error) {
	shown.ToolCallId, shown.Kind, shown.RawInput = sdk.ToolCallId(c.ID), &c.kind, c.rawInput()
	shown.Status = sdk.Ptr(sdk.ToolCallStatusPending)
	q := backend.Question{ToolCall: backend.Encode(shown),
		Once: "Allow", Always: allowAlways, Reject: "Reject"}
	always, err = q.Ask(ctx, c.turn.host)
	if errors.Is(err, backend.ErrRejected) {
		err = errRejected
	}
	return always, err
}
