package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/protocol"
)

// Answer is a user's answer to a [Question].
type Answer string

// All answers. Cancelled cannot be offered: it means that the user cancelled the turn instead.
const (
	AllowOnce   Answer = "allow_once"
	AllowAlways Answer = "allow_always"
	RejectOnce  Answer = "reject_once"
	Cancelled   Answer = "cancelled"
)

// Question is a question to the user, whether something may be done.
type Question struct {
	// ToolCall shows what is to be done. It is the toolCall of session/request_permission.
	ToolCall Raw
	// Offers are the answers to choose from, each at most once.
	Offers []Offer
}

// Offer is an answer that the user can choose, and its label.
type Offer struct {
	Answer Answer
	Label  string
}

// id returns the optionId of the offer.
func (o Offer) id() string { return strings.ReplaceAll(string(o.Answer), "_", "-") }

// Ask asks the user through the client and waits for the answer. An answer counts only if it was
// offered; anything else is RejectOnce. The error is the cause of ctx if it has ended, and
// otherwise says why the client could not be asked.
func (q Question) Ask(ctx context.Context, c Client) (Answer, error) {
	result, err := c.Call(ctx, protocol.RequestPermission, q.params())()
	if err != nil {
		if ctx.Err() != nil {
			return RejectOnce, context.Cause(ctx)
		}
		return RejectOnce, fmt.Errorf("cannot ask the client for permission: %w", err)
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return RejectOnce,
			fmt.Errorf("cannot read the client's answer to a permission request: %w", err)
	}
	switch answer.Outcome.Outcome {
	case "cancelled":
		return Cancelled, nil
	case "selected":
		for _, o := range q.Offers {
			if o.id() == answer.Outcome.OptionID {
				return o.Answer, nil
			}
		}
	}
	return RejectOnce, nil
}

func (q Question) params() Raw {
	options := make([]sdk.PermissionOption, len(q.Offers))
	for i, o := range q.Offers {
		options[i] = sdk.PermissionOption{OptionId: sdk.PermissionOptionId(o.id()), Name: o.Label,
			Kind: sdk.PermissionOptionKind(o.Answer)}
	}
	return Encode(struct {
		ToolCall Raw                    `json:"toolCall"`
		Options  []sdk.PermissionOption `json:"options"`
	}{q.ToolCall, options})
}
