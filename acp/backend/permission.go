package backend

import (
	"context"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// ErrRejected is returned by [Asker.Ask] if the user, or a rule, does not allow the action.
var ErrRejected = permission.ErrRejected

// Asker asks the user questions.
type Asker interface {
	// Ask asks the user whether something may be done, unless a rule decides about it, and waits
	// for the answer. It returns an error unless it is allowed: an [ErrRejected], also for an
	// answer that was not offered, whose text names the rule if one denies it; [ErrCancelled] if
	// the client cancelled the question with the turn; the cause of ctx if that has ended; any
	// other says why the client could not be asked.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Action describes to the user's rules what a backend does. Only the backends of this module do
// that, because the adapter knows no other type.
type Action interface{ IsAction() }

// Question asks the user whether something may be done.
type Question struct {
	// Call shows what is asked about.
	Call ToolCall
	// Once, Always and Reject are the labels of the answers. If Always is "", it is not offered.
	Once, Always, Reject string
	// Action is what rules decide about. None does if it is nil.
	Action Action
	// OnlyByRule means that the user is asked only if a rule wants that.
	OnlyByRule bool
}

// Answer says how the user has allowed what a question asks for.
type Answer struct {
	// Always means that they chose the answer Always. If Action runs a command, the same is
	// allowed in this session from now on, as long as the files that it names do not change.
	Always bool
}

// The ids of the answers.
const (
	onceID   = "allow-once"
	alwaysID = permission.AlwaysID
	rejectID = "reject-once"
)

// Ask asks the user through the client, without rules, as [Asker.Ask] does.
func (q Question) Ask(ctx context.Context, c Client) (Answer, error) {
	result, err := c.Call(ctx, protocol.RequestPermission, q.Params())()
	return q.Answer(ctx, result, err)
}

// Params returns the params of the session/request_permission that asks a client.
func (q Question) Params() Raw {
	call := q.Call
	call.SessionUpdate, call.Status = "", sdk.Ptr(sdk.ToolCallStatusPending)
	options := []permission.Option{{Kind: permission.AllowOnce, Name: q.Once, ID: onceID}}
	if q.Always != "" {
		options = append(options,
			permission.Option{Kind: permission.AllowAlways, Name: q.Always, ID: alwaysID})
	}
	options = append(options,
		permission.Option{Kind: permission.RejectOnce, Name: q.Reject, ID: rejectID})
	return Encode(struct {
		ToolCall ToolCall            `json:"toolCall"`
		Options  []permission.Option `json:"options"`
	}{call, options})
}

// Answer reads the response of a client, whose request has the context ctx.
func (q Question) Answer(ctx context.Context, result Raw, err error) (Answer, error) {
	if err != nil {
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		return Answer{}, fmt.Errorf("cannot ask the client for permission: %w", err)
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := strictjson.Decode(result, &answer); err != nil {
		return Answer{}, fmt.Errorf("cannot read the client's answer to a permission request: %w",
			err)
	}
	switch o := answer.Outcome; {
	case o.Outcome == "cancelled":
		return Answer{}, fmt.Errorf("the permission request was cancelled: %w", ErrCancelled)
	case o.Outcome == "selected" && o.OptionID == onceID:
		return Answer{}, nil
	case o.Outcome == "selected" && o.OptionID == alwaysID && q.Always != "":
		return Answer{Always: true}, nil
	}
	return Answer{}, ErrRejected
}
