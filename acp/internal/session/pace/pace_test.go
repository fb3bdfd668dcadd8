package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The clock of these tests moves only while all wait.

// took returns how long n updates take.
func took(wait func(context.Context), n int) time.Duration {
	begun := time.Now()
	for range n {
		wait(context.Background())
	}
	return time.Since(begun)
}

// Clauses A27, W9.
func TestPace(t *testing.T) {
	const accuracy = float64(10 * time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), 1000, false)
		require.Zero(t, took(p, burst), "the first are sent at once")
		require.InDelta(t, 5*time.Second, took(p, 5000), accuracy)
		time.Sleep(time.Hour) // the client did not read
		require.InDelta(t, time.Second, took(p, catchUp+1000), accuracy)

		request, leave := context.WithCancelCause(t.Context())
		p = New(request, 1, false)
		took(p, burst)
		time.AfterFunc(10*time.Second, func() { leave(jsonrpc.ErrClosed) })
		require.InDelta(t, 10*time.Second, took(p, 1000), float64(time.Second))

		request, cancel := context.WithCancelCause(t.Context())
		cancel(jsonrpc.ErrRequestCancelled)
		require.InDelta(t, time.Second, took(New(request, 1000, false), burst+1000), accuracy)
	})
}

// Clause A27.
func TestPaceOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isLimited := func(chosen int, name string) bool {
			return took(New(t.Context(), chosen, IsUnlimited(name)), burst+10_000) > 0
		}
		for name, limited := range map[string]bool{
			"zed": false, "JetBrains.IntelliJ IDEA": false, "CodeCompanion.nvim": false,
			"zedlike": true, "JetBrains": true, "": true,
		} {
			require.Equal(t, limited, isLimited(0, name), name)
			require.False(t, isLimited(-1, name))
			require.True(t, isLimited(100, name))
		}
	})
}
