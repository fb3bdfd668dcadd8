package proxy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The adapter may answer a cancelled turn before this package gives the child up: the next turn
// gets what the child says from then on.
//
// Clause W6.
func TestUpdatesAfterCancelledTurn(t *testing.T) {
	cs := &childSession{}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := &prompt{ctx: ctx}, &prompt{ctx: t.Context()}
	cs.addPrompt(first)
	cancel()
	require.Same(t, first, cs.runningPromptLocked(), "the child has not answered it")
	cs.addPrompt(second)
	require.Same(t, second, cs.runningPromptLocked())
}
