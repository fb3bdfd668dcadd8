package mcpclient

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestM5_EachServerHasItsOwnTimes(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy   Policy
		asks     bool
		expected time.Duration
	}{
		"asks":                       {Policy{SettleAfterRoots: 7 * ms}, true, 7 * ms},
		"asks, the other is set":     {Policy{SettleWithoutRoots: 7 * ms}, true, 100 * ms},
		"never asks":                 {Policy{SettleWithoutRoots: 30 * ms}, false, 30 * ms},
		"never asks, other is set":   {Policy{SettleAfterRoots: 30 * ms}, false, 500 * ms},
		"never asks, and is bounded": {Policy{SettleWithoutRoots: time.Hour}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBarrier(c.policy, time.Minute)
				began := time.Now()
				b.shut()
				first := c.asks
				b.settle(t.Context(), func(context.Context) error {
					if first {
						b.answered()
					}
					first = false
					return nil
				})
				<-b.passed()
				require.Equal(t, c.expected, time.Since(began))
			})
		})
	}
}
