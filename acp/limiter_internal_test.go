package acp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// The clock of these tests moves only while all wait.

func TestA27_AReplayKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Options{ReplayRate: 1000}.newPace(t.Context())
		begun := time.Now()
		waits(p, replayBurst)
		require.Zero(t, time.Since(begun), "the first go at once")
		waits(p, 5000)
		require.InDelta(t, 5*time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

func TestA27_APaceThatWasLostIsNotMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Options{ReplayRate: 1000}.newPace(t.Context())
		waits(p, replayBurst+10)
		time.Sleep(time.Hour) // the client did not read
		begun := time.Now()
		waits(p, 1000)
		require.InDelta(t, time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

func TestW9_AReplayDoesNotKeepItsPaceForAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request, leave := context.WithCancelCause(t.Context())
		p := Options{ReplayRate: 1}.newPace(request)
		waits(p, replayBurst)
		time.AfterFunc(10*time.Second, func() { leave(jsonrpc.ErrClosed) })
		begun := time.Now()
		waits(p, 1000)
		require.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestA27_AReplayOfACancelledRequestKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request, cancel := context.WithCancelCause(t.Context())
		cancel(jsonrpc.ErrRequestCancelled)
		p := Options{ReplayRate: 1000}.newPace(request)
		begun := time.Now()
		waits(p, replayBurst+1000)
		require.InDelta(t, time.Second, time.Since(begun), float64(10*time.Millisecond))
	})
}

func TestAReplayWithoutAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		waits(Options{ReplayRate: -1}.newPace(t.Context()), 100_000)
		require.Zero(t, time.Since(begun))
	})
}

func waits(p *pace, n int) {
	for range n {
		p.wait(context.Background())
	}
}
