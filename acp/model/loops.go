package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// warnAfter and stopAfter are how often the same call may have the same result before the model is
// warned, and before the user is asked. The model may wait for something.
const warnAfter, stopAfter = 3, 10

// loops counts the calls of a turn that end in the same way again and again. Calls can end at the
// same time.
type loops struct {
	judging sync.Mutex
	ends    map[[sha256.Size]byte]int // how often a call, by its hash, had the same result
	stuck   string                    // says which call was made too often, "" for none
}

// judge counts calls that have the same result. It returns what to add to the result, and notes
// that the user must be asked after too many. A change of a file starts the count again, because
// calls may then have another result.
func (t *modelTurn) judge(c *modelCall, o outcome) string {
	t.judging.Lock()
	defer t.judging.Unlock()
	changes := []sdk.ToolKind{sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove}
	if !o.failed && slices.Contains(changes, c.kind) {
		clear(t.ends)
		return ""
	}
	key := sha256.Sum256(backend.Encode([]string{c.Name, c.Arguments, o.said}))
	t.ends[key]++
	n := t.ends[key]
	if n >= stopAfter {
		t.stuck = fmt.Sprintf("the same call has had the same result %d times: %s", n, c.title)
	}
	if n < warnAfter {
		return ""
	}
	return fmt.Sprintf("\n[This call has had the same result %d times. "+
		"Do something else, or tell the user what prevents it.]", n)
}

// askToGoOn asks the user whether the model may go on although it makes the same call again and
// again. If not, or if nobody can be asked, the turn ends.
func (t *modelTurn) askToGoOn(ctx context.Context) (sdk.StopReason, error) {
	stuck := t.stuck
	t.stuck = ""
	_, err := backend.AskShown(ctx, t.host, t.updates, backend.Question{
		Call: backend.NewToolCall("loop", sdk.ToolKindOther, "Go on, although "+stuck, ""),
		Once: "Go on", Reject: "Stop",
	})
	switch {
	case ctx.Err() != nil, errors.Is(err, backend.ErrCancelled):
		return "", err
	case err == nil:
		clear(t.ends)
		return "", nil
	}
	return sdk.StopReasonEndTurn, t.note(ctx, "\n\nStopped, because "+stuck+
		". Send another message that says what to do instead.")
}
