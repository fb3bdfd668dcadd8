package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
)

const (
	// warnAfter and stopAfter are how often the same call may fail in the same way before the model
	// is warned, and before the user is asked.
	warnAfter, stopAfter = 3, 5
	// loopsAfter is how often the same call may have the same result before the user is asked. It
	// is more, because the model may wait for something.
	loopsAfter = 10
)

// loops counts the calls of a turn that end in the same way again and again. Calls can end at the
// same time.
type loops struct {
	judging sync.Mutex
	ends    map[callEnd]int // how often a call had the same result
	stuck   string          // says which call was made too often, "" for none
}

// callEnd is how a call ended: the call with its result, and the outcome in words.
type callEnd struct {
	call    [sha256.Size]byte
	outcome string
}

// judge counts calls that fail, or succeed, in the same way. It returns what to add to the result,
// and notes that the user must be asked after too many. A change of a file starts the count again,
// because calls may then have another result; after a command, calls that failed may succeed.
func (t *modelTurn) judge(c *modelCall, result string, status sdk.ToolCallStatus) string {
	t.judging.Lock()
	defer t.judging.Unlock()
	const fails = "failed in the same way"
	outcome, most := fails, stopAfter
	if status != failed {
		outcome, most = "had the same result", loopsAfter
		switch c.kind {
		case sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove:
			clear(t.ends)
			return ""
		}
		if !c.tool.Annotations.ReadOnly {
			maps.DeleteFunc(t.ends, func(e callEnd, _ int) bool { return e.outcome == fails })
		}
	}
	key := callEnd{sha256.Sum256(backend.Encode([]string{c.Name, c.Arguments, result})), outcome}
	if t.ends == nil {
		t.ends = map[callEnd]int{}
	}
	t.ends[key]++
	n := t.ends[key]
	if n >= most {
		t.stuck = fmt.Sprintf("the same call has %s %d times: %s", outcome, n, c.title)
	}
	if n < warnAfter {
		return ""
	}
	return fmt.Sprintf("\n[This call has %s %d times. "+
		"Do something else, or tell the user what prevents it.]", outcome, n)
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
