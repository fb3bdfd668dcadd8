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

// begun returns a large message of user that arrives, and whose end is closed if it is ended.
func begun(t *testing.T, b *budget.Budget, user string) (*budget.Large, <-chan struct{}) {
	t.Helper()
	ended := make(chan struct{})
	l, err := b.Of(user).Begin(t.Context(), sync.OnceFunc(func() { close(ended) }), func() {})
	require.NoError(t, err)
	return l, ended
}

// begin lets a large message begin, and returns a channel for the result.
func begin(ctx context.Context, b *budget.Budget, user string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := b.Of(user).Begin(ctx, func() {}, func() {})
		done <- err
	}()
	return done
}

// Clause N6.
func TestOneUserLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		anas, _ := begun(t, b, "ana")
		anas.Complete(10 * mib)
		ctx, cancel := context.WithCancel(t.Context())
		second := begin(ctx, b, "ana")
		synctest.Wait()
		require.Empty(t, second, "one large message of a user is here at a time")
		require.True(t, b.Of("ana").Reserve(20*mib))
		require.False(t, b.Of("ana").Reserve(2*mib))
		begun(t, b, "bob")
		cids := begin(ctx, b, "cid")
		synctest.Wait()
		require.Empty(t, cids, "all users together have a limit")
		require.False(t, b.Of("cid").Reserve(2*mib))
		require.True(t, b.Of("dan").Reserve(mib), "each user has some room in any case")
		b.Of("dan").Release(mib)
		b.Of("ana").Release(20 * mib)
		require.NoError(t, <-cids)
		require.Equal(t, 30*mib, b.Used())
		anas.Done()
		require.NoError(t, <-second)
		cancel()
		require.ErrorIs(t, <-begin(ctx, b, "ana"), context.Canceled)
	})
}

// What clients do not read keeps no large message from arriving.
func TestOneLargeMessageArrivesInAnyCase(t *testing.T) {
	b := limited()
	require.True(t, b.Of("ana").Reserve(20*mib))
	require.True(t, b.Of("bob").Reserve(20*mib))
	anas, _ := begun(t, b, "ana")
	require.Equal(t, 50*mib, b.Used())
	anas.Done()
	begun(t, b, "bob")
}

// A message that makes no progress loses its room to one that waits, and keeps it as long as nobody
// does.
//
// Clause N6.
func TestMessageWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		idle, idleEnded := begun(t, b, "ana")
		steady, steadyEnded := begun(t, b, "bob")
		handled, handledEnded := begun(t, b, "cid")
		handled.Complete(10 * mib)
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
		time.Sleep(2 * time.Second)
		next := begin(t.Context(), b, "ana")
		<-idleEnded
		idle.Done()
		require.NoError(t, <-next)
		others := []<-chan error{begin(t.Context(), b, "bob"), begin(t.Context(), b, "cid")}
		time.Sleep(time.Hour)
		for i, ended := range []<-chan struct{}{steadyEnded, handledEnded} {
			select {
			case <-ended:
				t.Fatal("it makes progress, or has arrived")
			case <-others[i]:
				t.Fatal("there is no room")
			default:
			}
		}
		close(stop)
		arriving.Wait()
		<-steadyEnded
		steady.Done()
		handled.Done()
		for _, done := range others {
			require.NoError(t, <-done)
		}
	})
}

// Messages that wait for each other end, in whatever order.
func TestMessagesThatWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		done := make(chan error)
		for i := range 60 {
			go func() {
				user := string(rune('a' + i%6))
				l, err := b.Of(user).Begin(t.Context(), func() { t.Error("ended") }, func() {})
				if err == nil {
					for range 10 {
						l.Arrived(mib)
						time.Sleep(time.Millisecond)
					}
					l.Complete(9 * mib)
					l.Done()
				}
				done <- err
			}()
		}
		for range 60 {
			require.NoError(t, <-done)
		}
		require.Zero(t, b.Used())
	})
}
