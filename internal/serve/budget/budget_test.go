package budget_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
)

const mib = 1 << 20

func limited() *budget.Budget {
	return budget.New(budget.Limits{PerUser: 20 * mib, Total: 40 * mib, Message: 10 * mib,
		Stall: 10 * time.Second})
}

// grown returns a message of size bytes that has arrived in part, and whose end is closed if it is
// ended.
func grown(t *testing.T, b *budget.Budget, user string, size int) (*budget.Upload, <-chan struct{}) {
	t.Helper()
	ended := make(chan struct{})
	u := b.Upload(user, func() { close(ended) })
	require.NoError(t, u.Grow(t.Context(), size, func() {}))
	return u, ended
}

// grow lets a message grow, and returns a channel for the result.
func grow(ctx context.Context, b *budget.Budget, user string, size int) (*budget.Upload, <-chan error) {
	u := b.Upload(user, func() {})
	done := make(chan error, 1)
	go func() { done <- u.Grow(ctx, size, func() {}) }()
	return u, done
}

// Clause N6.
func TestOneUserLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		for range 2 {
			grown(t, b, "ana", 10*mib)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, done := grow(ctx, b, "ana", mib)
		synctest.Wait()
		require.Empty(t, done)
		require.False(t, b.Reserve("ana", 2*mib))
		small, _ := grown(t, b, "ana", budget.Small)
		require.Zero(t, small.Finish(budget.Small))
		grown(t, b, "bob", 10*mib)
		bobs, _ := grown(t, b, "bob", 10*mib)
		require.True(t, b.Reserve("cid", mib))
		require.False(t, b.Reserve("cid", mib), "all users together have a limit")
		require.True(t, b.Reserve("dan", mib), "each user has some room in any case")
		b.Release("dan", mib)
		b.Release("cid", mib)
		require.Equal(t, 10*mib, bobs.Finish(10*mib))
		b.Release("bob", 10*mib)
		require.Equal(t, 30*mib, b.Used())
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// A message that makes no progress loses its room to one that waits, and keeps it as long as nobody
// does.
//
// Clause N6.
func TestMessageWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		idle, idleEnded := grown(t, b, "ana", 10*mib)
		steady, steadyEnded := grown(t, b, "ana", 10*mib)
		_, otherEnded := grown(t, b, "bob", 10*mib)
		time.Sleep(time.Hour)
		select {
		case <-idleEnded:
			t.Fatal("nobody waits")
		default:
		}
		stop := make(chan struct{})
		var arriving sync.WaitGroup
		arriving.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
					steady.Arrived(100 << 10)
				}
			}
		})
		_, done := grow(t.Context(), b, "ana", 10*mib)
		<-idleEnded
		require.Zero(t, idle.Finish(0))
		require.NoError(t, <-done)
		for _, ended := range []<-chan struct{}{steadyEnded, otherEnded} {
			select {
			case <-ended:
				t.Fatal("it makes progress, or is another user's")
			default:
			}
		}
		close(stop)
		arriving.Wait()
	})
}

// Messages that wait for each other end, because the oldest may exceed the limit.
func TestMessagesThatWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		done := make(chan error)
		for range 20 {
			go func() {
				u := b.Upload("ana", func() { t.Error("ended") })
				for size := mib; size <= 10*mib; size += mib {
					if err := u.Grow(t.Context(), size, func() {}); err != nil {
						done <- err
						return
					}
					u.Arrived(mib)
					time.Sleep(time.Millisecond)
				}
				b.Release("ana", u.Finish(10*mib))
				done <- nil
			}()
		}
		for range 20 {
			require.NoError(t, <-done)
		}
		require.Zero(t, b.Used())
	})
}
