package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := 0
		for range pause.Attempts(ctx) {
			n++
		}
		require.Equal(t, 18, n)
	})
}

func TestUntil(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	for named, want := range map[string]time.Duration{
		"": 0, "soon": 0, "NaN": 0, "-5": 0,
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "1e300": 365 * 24 * time.Hour,
		"2m59.5s":    179500 * time.Millisecond,
		"1795680025": 25 * time.Second, "1795680025500": 25500 * time.Millisecond,
		"2026-11-26T08:00:20Z": 20 * time.Second, "2026-11-26T07:00:00Z": 0,
		"Thu, 26 Nov 2026 08:00:20 GMT": 20 * time.Second, "Thu, 26 Nov 2026 07:00:00 GMT": 0,
	} {
		require.Equal(t, want, pause.Until(named, now), named)
	}
}
