package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/protocol"
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
	result, err := c.Call(ctx, protocol.RequestPermission, q.params())()
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
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return false, fmt.Errorf("cannot read the client's answer to a permission request: %w", err)
	}
	switch o := answer.Outcome; {
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
