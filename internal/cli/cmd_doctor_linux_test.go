package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
)

// An agent that doctor stops because it is silent is not said to have ended by itself.
func TestSilentAgent(t *testing.T) {
	silent := errors.New("it has not answered")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, silent)
	defer cancel()
	_, err := tryAgent(ctx, downstream{
		command: process.Command{Path: "sleep", Args: []string{"1000"}},
	})
	require.ErrorContains(t, err, silent.Error())
}
