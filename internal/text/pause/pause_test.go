package pause_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text/pause"
)

func TestFor(t *testing.T) {
	require.NoError(t, pause.For(t.Context(), time.Millisecond))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not needed")
	cancel(why)
	require.Equal(t, why, pause.For(ctx, time.Hour))
}

func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range pause.Every(ctx, time.Millisecond) {
		if n++; n == 3 {
			cancel()
		}
	}
	require.GreaterOrEqual(t, n, 3)
	for range pause.Every(t.Context(), time.Millisecond) {
		break
	}
}
