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
	full, stopped := errors.New("the disk is full"), backend.ErrCancelled
	failed, done := Outcome{Err: full}, result("end_turn")
	for name, c := range map[string]struct {
		ending ending
		now    error
		want   Outcome
	}{
		"completed":                  {ending{came: done}, nil, done},
		"failed":                     {ending{came: failed}, nil, failed},
		"cancelled, but completed":   {ending{done, stopped, nil}, stopped, result("cancelled")},
		"cancelled, and then failed": {ending{failed, stopped, full}, stopped, result("cancelled")},
		"cancelled once completed":   {ending{came: done}, stopped, result("cancelled")},
		"too much output": {ending{result("cancelled"), ErrFull, nil}, ErrFull,
			result("max_turn_requests")},
		"too much, and then an error": {ending{failed, ErrFull, nil}, ErrFull,
			result("max_turn_requests")},
		"too much, but completed": {ending{done, ErrFull, nil}, ErrFull, Outcome{Err: ErrFull}},
		"ended by the store":      {ending{done, full, ErrFull}, full, failed},
		"not stored": {ending{came: done, failure: full}, nil,
			Outcome{Result: done.Result, Err: full}},
	} {
		require.Equal(t, c.want, c.ending.outcome(c.now), name)
	}
	turn := New(t.Context())
	turn.Finish(Outcome{})
	turn.Fail(full)
	require.ErrorContains(t, turn.Outcome().Err, "without a stop reason")
}
