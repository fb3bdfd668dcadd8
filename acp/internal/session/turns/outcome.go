package turns

import (
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Outcome is how a turn ended: the result of the prompt, or an error.
type Outcome struct {
	Result backend.Raw
	Err    error
}

// StopReason returns the stop reason of a prompt, "" if it failed or its result has none.
func (o Outcome) StopReason() sdk.StopReason {
	if o.Err != nil {
		return ""
	}
	return sdk.StopReason(strictjson.FindText(o.Result, "stopReason"))
}

// ErrFull ends a turn that has sent too many updates. Otherwise an agent that loops would fill the
// disk.
var ErrFull = errors.New("the turn has reached the limit for the output of one turn")

// endedBy returns how a turn ended for which o came from the backend. It had ended early with the
// cause, if that is not nil.
func (o Outcome) endedBy(cause error) Outcome {
	if o.Err == nil && o.StopReason() == "" {
		o = Outcome{Err: errors.New("the agent answered the prompt without a stop reason")}
	}
	completed := o.Err == nil && o.StopReason() != sdk.StopReasonCancelled
	switch {
	case errors.Is(cause, backend.ErrCancelled):
		return o.cancelled()
	case errors.Is(cause, ErrFull) && !completed:
		return Outcome{Result: backend.Stopped(sdk.StopReasonMaxTurnRequests)}
	case cause != nil:
		return Outcome{Err: cause}
	}
	return o
}

// cancelled returns the outcome of a cancelled turn, with what o has besides the stop reason.
func (o Outcome) cancelled() Outcome {
	return Outcome{Result: strictjson.Set(o.Result, "stopReason",
		strictjson.Text(string(sdk.StopReasonCancelled)))}
}
