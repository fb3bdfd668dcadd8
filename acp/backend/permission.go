package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Answer is what a user says to a question for permission.
type Answer string

// The answers. Cancelled cannot be offered: the user cancelled the turn instead.
const (
	AllowOnce   Answer = "allow_once"
	AllowAlways Answer = "allow_always"
	RejectOnce  Answer = "reject_once"
	Cancelled   Answer = "cancelled"
)

// Question asks the user whether something may be done (A30).
type Question struct {
	// ToolCall shows what is to be done: the toolCall of session/request_permission.
	ToolCall Raw
	// Offers are what the user can answer, each at most once.
	Offers []Offer
}

// Offer is an answer that the user can give, and the label that it is shown under.
type Offer struct {
	Answer Answer
	Label  string
}

// id names an offer in the protocol.
func (o Offer) id() string { return strings.ReplaceAll(string(o.Answer), "_", "-") }

// Ask has the client ask the user, and waits for the answer. An answer allows only if it was offered and selected:
// all that is neither that nor a cancellation is RejectOnce. The error is the cause of ctx once that has ended,
// otherwise it says that the client could not be asked.
func (q Question) Ask(ctx context.Context, c Client) (Answer, error) {
	result, err := c.Call(ctx, "session/request_permission", q.params())()
	if err != nil {
		if ctx.Err() != nil {
			return RejectOnce, context.Cause(ctx)
		}
		return RejectOnce, fmt.Errorf("the client could not be asked for permission: %w", err)
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return RejectOnce, fmt.Errorf("the client could not be asked for permission: its answer cannot be read: %w", err)
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
	type option struct {
		ID   string `json:"optionId"`
		Name string `json:"name"`
		Kind Answer `json:"kind"`
	}
	options := []option{}
	for _, o := range q.Offers {
		options = append(options, option{o.id(), o.Label, o.Answer})
	}
	return Encode(struct {
		ToolCall Raw      `json:"toolCall"`
		Options  []option `json:"options"`
	}{q.ToolCall, options})
}
