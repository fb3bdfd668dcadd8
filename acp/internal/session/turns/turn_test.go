package turns

import (
	"context"
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
