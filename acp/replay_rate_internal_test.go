package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The clock of these tests moves only while all wait.

// Clause A27.
func TestReplayIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newReplayRate(t.Context(), 1000)
		begun := time.Now()
		waits(l, replayBurst)
		require.Zero(t, time.Since(begun), "the first are sent at once")
		waits(l, 5000)
		require.InDelta(t, 5*time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

// Clause A27.
func TestLittleIsCaughtUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newReplayRate(t.Context(), 1000)
		waits(l, replayBurst+10)
		time.Sleep(time.Hour) // the client did not read
		begun := time.Now()
		waits(l, replayCatchUp+1000)
		require.InDelta(t, time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

// Clause W9.
func TestReplayIsNotLimitedAfterTheClientLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request, leave := context.WithCancelCause(t.Context())
		l := newReplayRate(request, 1)
		waits(l, replayBurst)
		time.AfterFunc(10*time.Second, func() { leave(jsonrpc.ErrClosed) })
		begun := time.Now()
		waits(l, 1000)
		require.InDelta(t, 10*time.Second, time.Since(begun), float64(time.Second))
	})
}

// Clause A27.
func TestReplayOfCancelledRequestIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request, cancel := context.WithCancelCause(t.Context())
		cancel(jsonrpc.ErrRequestCancelled)
		l := newReplayRate(request, 1000)
		begun := time.Now()
		waits(l, replayBurst+1000)
		require.InDelta(t, time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

func TestReplayWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		waits(newReplayRate(t.Context(), -1), 100_000)
		require.Zero(t, time.Since(begun))
	})
}

func waits(l *replayRate, n int) {
	for range n {
		l.wait(context.Background())
	}
}

// Clause A27.
func TestReplayRateOfClient(t *testing.T) {
	for name, want := range map[string]int{
		`"zed"`: -1, `"JetBrains.IntelliJ IDEA"`: -1, `"JetBrains.GoLand"`: -1,
		`"CodeCompanion.nvim"`: -1, `"agent-shell"`: -1,
		`"zedlike"`: defaultReplayRate, `"JetBrains"`: defaultReplayRate, `""`: defaultReplayRate,
		`null`: defaultReplayRate, `7`: defaultReplayRate,
	} {
		for _, chosen := range []int{0, -1, 100} {
			c := &connection{agent: &agent{options: Options{ReplayRate: chosen}}}
			c.agent.known.Store(&initialization{client: readClientCapabilities(
				json.RawMessage(`{"protocolVersion":1,"clientInfo":{"name":` + name + `}}`))})
			require.Equal(t, cmp.Or(chosen, want), c.replayRate(), name)
		}
	}
}
