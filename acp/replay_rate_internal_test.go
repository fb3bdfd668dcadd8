package acp

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The clock of these tests moves only while all wait.

// paced returns the pace of a load of a client with a name.
func paced(request context.Context, chosen int, name string) pace {
	c := &connection{agent: &agent{options: Options{ReplayRate: chosen}}}
	c.agent.known.Store(&initialization{client: readClientCapabilities(
		json.RawMessage(`{"protocolVersion":1,"clientInfo":{"name":` + name + `}}`))})
	return c.pace(request)
}

// took returns how long n updates take.
func took(p pace, n int) time.Duration {
	begun := time.Now()
	for range n {
		p(context.Background())
	}
	return time.Since(begun)
}

// Clauses A27, W9.
func TestReplayIsLimited(t *testing.T) {
	const accuracy = float64(10 * time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		p := paced(t.Context(), 1000, `"x"`)
		require.Zero(t, took(p, replayBurst), "the first are sent at once")
		require.InDelta(t, 5*time.Second, took(p, 5000), accuracy)
		time.Sleep(time.Hour) // the client did not read
		require.InDelta(t, time.Second, took(p, replayCatchUp+1000), accuracy)

		request, leave := context.WithCancelCause(t.Context())
		p = paced(request, 1, `"x"`)
		took(p, replayBurst)
		time.AfterFunc(10*time.Second, func() { leave(jsonrpc.ErrClosed) })
		require.InDelta(t, 10*time.Second, took(p, 1000), float64(time.Second))

		request, cancel := context.WithCancelCause(t.Context())
		cancel(jsonrpc.ErrRequestCancelled)
		require.InDelta(t, time.Second, took(paced(request, 1000, `"x"`), replayBurst+1000), accuracy)
	})
}

// Clause A27.
func TestReplayRateOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isLimited := func(chosen int, name string) bool {
			return took(paced(t.Context(), chosen, name), replayBurst+10_000) > 0
		}
		for name, limited := range map[string]bool{
			`"zed"`: false, `"JetBrains.IntelliJ IDEA"`: false, `"CodeCompanion.nvim"`: false,
			`"zedlike"`: true, `"JetBrains"`: true, `""`: true, `null`: true, `7`: true,
		} {
			require.Equal(t, limited, isLimited(0, name), name)
			require.False(t, isLimited(-1, name))
			require.True(t, isLimited(100, name))
		}
	})
}
