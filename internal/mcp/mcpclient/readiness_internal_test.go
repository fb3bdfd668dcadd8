package mcpclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// settled returns how long a server takes to become ready after a reset, in fake time.
func settled(t *testing.T, during func(b *readiness), ping time.Duration) (after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newReadiness(acpmcp.Policy{}, 5*time.Second)
		<-b.ready()
		began := time.Now()
		require.True(t, b.reset())
		go b.settle(t.Context(), func(ctx context.Context) error {
			select {
			case <-time.After(ping):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		var running sync.WaitGroup
		running.Go(func() { during(b) })
		<-b.ready()
		after = time.Since(began)
		running.Wait()
	})
	return after
}

// Clause M5.
func TestRootsSentBeforeInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newReadiness(acpmcp.Policy{}, 5*time.Second)
		b.rootsSent() // the server asks before Connect returns
		b.initialized()
		began := time.Now()
		b.settle(t.Context(), func(context.Context) error { return nil })
		<-b.ready()
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}

// Clause M5.
func TestReadiness(t *testing.T) {
	const ms = time.Millisecond
	asks := func(at ...time.Duration) func(*readiness) {
		return func(b *readiness) {
			for _, d := range at {
				time.Sleep(d)
				b.rootsSent()
			}
		}
	}
	for name, c := range map[string]struct {
		during         func(*readiness)
		ping, expected time.Duration
	}{
		"never asks":                    {asks(), ms, 502 * ms},
		"asks at once":                  {asks(ms / 2), ms, 101*ms + ms/2},
		"asks late":                     {asks(350 * ms), ms, 451 * ms},
		"asks twice":                    {asks(10*ms, 50*ms), ms, 161 * ms},
		"asks again and again":          {asks(times(100, 80*ms)...), ms, 5 * time.Second},
		"answers pings late":            {asks(20 * ms), 50 * ms, 570 * ms},
		"never answers a ping":          {asks(ms), time.Hour, 5 * time.Second},
		"roots change while it settles": {func(b *readiness) { time.Sleep(400 * ms); b.reset() }, ms, 901 * ms},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.expected, settled(t, c.during, c.ping)) })
	}
}

func times(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

// Clause M5.
func TestReadyWhenTheConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newReadiness(acpmcp.Policy{}, time.Second)
		b.reset()
		b.settle(t.Context(), func(context.Context) error { return errors.New("closed") })
		<-b.ready()
	})
}

// Clause M5.
func TestSettleTimesPerServer(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy   acpmcp.Policy
		asks     bool
		expected time.Duration
	}{
		"asks":                       {acpmcp.Policy{SettleAfterRoots: 7 * ms}, true, 7 * ms},
		"asks, the other is set":     {acpmcp.Policy{SettleWithoutRoots: 7 * ms}, true, 100 * ms},
		"never asks":                 {acpmcp.Policy{SettleWithoutRoots: 30 * ms}, false, 30 * ms},
		"never asks, other is set":   {acpmcp.Policy{SettleAfterRoots: 30 * ms}, false, 500 * ms},
		"never asks, and is bounded": {acpmcp.Policy{SettleWithoutRoots: time.Hour}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newReadiness(c.policy, time.Minute)
				began := time.Now()
				b.reset()
				first := c.asks
				b.settle(t.Context(), func(context.Context) error {
					if first {
						b.rootsSent()
					}
					first = false
					return nil
				})
				<-b.ready()
				require.Equal(t, c.expected, time.Since(began))
			})
		})
	}
}

// A server may fetch the roots before settle is called.
//
// Clause M5.
func TestRootsSentBeforeTheFirstPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newReadiness(acpmcp.Policy{}, 5*time.Second)
		began := time.Now()
		require.True(t, b.reset())
		b.rootsSent()
		go b.settle(t.Context(), func(context.Context) error { return nil })
		<-b.ready()
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
