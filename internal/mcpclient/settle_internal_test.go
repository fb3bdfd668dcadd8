package mcpclient

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server may be told of a change, and ask, before anybody waits for it to settle.
func TestM5_AQuestionBeforeTheFirstPingCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBarrier(Policy{}, 5*time.Second)
		began := time.Now()
		require.True(t, b.shut())
		b.answered()
		go b.settle(t.Context(), func(context.Context) error { return nil })
		<-b.passed()
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
