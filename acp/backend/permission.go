package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// ErrRejected is returned by [Question.Ask] if the user does not allow the action.
var ErrRejected = errors.New("the user did not allow it")

// Question asks the user whether something may be done.
type Question struct {
	// ToolCall shows the action. It is the toolCall of session/request_permission.
	ToolCall Raw
	// Once, Always and Reject are the labels of the answers. If Always is "", it is not offered.
	Once, Always, Reject string
}

// DeniedError is returned by [Question.Ask] if a rule of the user denies the action, or the mode of
// the session. It is an [ErrRejected].
type DeniedError struct {
	Rule string `json:"rule"`
	Mode bool   `json:"mode"`
}

func (e DeniedError) Error() string {
	if e.Mode {
		return "the mode of the session denies it"
	}
	return "the user's rule " + strconv.Quote(e.Rule) + " denies it"
}

// Is makes errors.Is find [ErrRejected].
func (e DeniedError) Is(target error) bool { return target == ErrRejected }

// Meta returns the _meta of an answer to the question.
func (e DeniedError) Meta() map[string]any {
	return map[string]any{"acp-agent": map[string]any{"denied": e}}
}

// The ids of the answers.
const (
	onceID   = "allow-once"
	alwaysID = "allow-always"
	rejectID = "reject-once"
)

// Ask asks the user through the client and waits for the answer. It returns nil if they allow it,
// and whether they always do. For an answer that was not offered the error is [ErrRejected]. The
// error is [ErrCancelled] if the client cancelled the question with the turn, and the cause of ctx
// if that has ended; any other says why the client could not be asked.
func (q Question) Ask(ctx context.Context, c Client) (always bool, err error) {
	asking := ctx
	if _, known := permission.Asked(ctx); !known { // no rule decides about it
		asking = permission.Asking(ctx, permission.Action{})
	}
	result, err := c.Call(asking, protocol.RequestPermission, q.params())()
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, fmt.Errorf("cannot ask the client for permission: %w", err)
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
		Meta struct {
			Ours struct {
				Denied *DeniedError `json:"denied"`
			} `json:"acp-agent"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return false, fmt.Errorf("cannot read the client's answer to a permission request: %w", err)
	}
	switch o := answer.Outcome; {
	case answer.Meta.Ours.Denied != nil:
		return false, *answer.Meta.Ours.Denied
	case o.Outcome == "cancelled":
		return false, fmt.Errorf("the permission request was cancelled: %w", ErrCancelled)
	case o.Outcome == "selected" && o.OptionID == onceID:
		return false, nil
	case o.Outcome == "selected" && o.OptionID == alwaysID && q.Always != "":
		return true, nil
	default:
		return false, ErrRejected
	}
}

func (q Question) params() Raw {
	options := []sdk.PermissionOption{
		{OptionId: onceID, Name: q.Once, Kind: sdk.PermissionOptionKindAllowOnce}}
	if q.Always != "" {
		options = append(options, sdk.PermissionOption{
			OptionId: alwaysID, Name: q.Always, Kind: sdk.PermissionOptionKindAllowAlways})
	}
	options = append(options, sdk.PermissionOption{
		OptionId: rejectID, Name: q.Reject, Kind: sdk.PermissionOptionKindRejectOnce})
	return Encode(struct {
		ToolCall Raw                    `json:"toolCall"`
		Options  []sdk.PermissionOption `json:"options"`
	}{q.ToolCall, options})
}
