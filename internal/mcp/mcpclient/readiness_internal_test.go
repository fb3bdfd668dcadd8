package mcpclient

import (
	"cmp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// settled returns how long a server takes to become ready after its roots have changed, in fake
// time.
func settled(t *testing.T, p acpmcp.Policy, max time.Duration, during func(*readiness)) (after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newReadiness(p, max)
		require.LessOrEqual(t, r.left(), time.Duration(0))
		began := time.Now()
		r.begin()
		var running sync.WaitGroup
		running.Go(func() { during(r) })
		awaitReady(r)
		after = time.Since(began)
		running.Wait()
		require.LessOrEqual(t, r.left(), time.Duration(0))
	})
	return after
}

// awaitReady waits until a server is ready, which may be earlier than it seems.
func awaitReady(r *readiness) {
	for r.left() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// asks sends the roots, each time after a pause.
func asks(pauses ...time.Duration) func(*readiness) {
	return func(r *readiness) {
		for _, d := range pauses {
			time.Sleep(d)
			r.rootsSent()
		}
	}
}

// Clause M5.
func TestRootsSentBeforeInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadiness(acpmcp.Policy{}, 5*time.Second)
		r.rootsSent() // the server asks before Connect returns
		require.LessOrEqual(t, r.left(), time.Duration(0))
		r.begin()
		began := time.Now()
		awaitReady(r)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}

// Clause M5.
func TestReadiness(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy   acpmcp.Policy
		max      time.Duration
		during   func(*readiness)
		expected time.Duration
	}{
		"never asks":                    {during: asks(), expected: 500 * ms},
		"asks at once":                  {during: asks(0), expected: 100 * ms},
		"asks late":                     {during: asks(350 * ms), expected: 450 * ms},
		"asks twice":                    {during: asks(10*ms, 50*ms), expected: 160 * ms},
		"asks again and again":          {during: asks(times(100, 80*ms)...), expected: 5 * time.Second},
		"roots change meanwhile":        {during: func(r *readiness) { time.Sleep(400 * ms); r.rootsChanged(); r.begin() }, expected: 900 * ms},
		"roots change after it asked":   {during: func(r *readiness) { r.rootsSent(); r.rootsChanged(); r.begin() }, expected: 500 * ms},
		"asks, for which a time is set": {policy: acpmcp.Policy{SettleAfterRoots: 7 * ms}, during: asks(0), expected: 7 * ms},
		"asks, the other time is set":   {policy: acpmcp.Policy{SettleWithoutRoots: 7 * ms}, during: asks(0), expected: 100 * ms},
		"never asks, a time is set":     {policy: acpmcp.Policy{SettleWithoutRoots: 30 * ms}, during: asks(), expected: 30 * ms},
		"never asks, other is set":      {policy: acpmcp.Policy{SettleAfterRoots: 30 * ms}, during: asks(), expected: 500 * ms},
		"never asks, and is bounded":    {policy: acpmcp.Policy{SettleWithoutRoots: time.Hour}, max: time.Minute, during: asks(), expected: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.expected, settled(t, c.policy, cmp.Or(c.max, 5*time.Second), c.during))
		})
	}
}

func times(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}
