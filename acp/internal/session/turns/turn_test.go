package turns

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// When turns end together, none of them can begin because one before it has ended.
//
// Clause W7.
func TestQueuedTurnsEndFirst(t *testing.T) {
	first, queued := New(t.Context()), New(t.Context())
	stop := first.stop
	first.stop = func(cause error) {
		require.ErrorIs(t, context.Cause(queued.ctx), backend.ErrCancelled)
		stop(cause)
	}
	End([]*Turn{first, queued}, backend.ErrCancelled, nil)
	require.ErrorIs(t, context.Cause(first.ctx), backend.ErrCancelled)
}

// What came in the backend counts unless the turn was ended early.
//
// Clauses A31, S4.
func TestOutcome(t *testing.T) {
	result := func(reason string) Outcome {
		return Outcome{Result: backend.Raw(`{"stopReason":"` + reason + `"}`)}
	}
	full := errors.New("the disk is full")
	failed := Outcome{Err: full}
	for _, c := range []struct {
		name       string
		came, want Outcome
		cause      error
	}{
		{"completed", result("end_turn"), result("end_turn"), nil},
		{"failed", failed, failed, nil},
		{"cancelled although completed", result("end_turn"), result("cancelled"),
			backend.ErrCancelled},
		{"cancelled although failed", failed, result("cancelled"), backend.ErrCancelled},
		{"too much output", result("cancelled"), result("max_turn_requests"), ErrFull},
		{"too much output, and then an error", failed, result("max_turn_requests"), ErrFull},
		{"too much output, but completed", result("end_turn"), Outcome{Err: ErrFull}, ErrFull},
		{"not stored", result("end_turn"), failed, full},
	} {
		turn := New(t.Context())
		if c.cause != nil {
			turn.End(c.cause)
		}
		turn.Finish(c.came)
		require.Equal(t, c.want, turn.Outcome(), c.name)
	}
	turn := New(t.Context())
	turn.Finish(Outcome{})
	turn.Fail(full)
	require.ErrorContains(t, turn.Outcome().Err, "without a stop reason")
}
