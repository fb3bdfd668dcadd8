package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// arrive lets callers wait for a place, in order, and returns the order in which they get it. Each
// gives it back at once. cancelled are those whose context ends while they wait.
func arrive(t *testing.T, q *queue, callers []string, cancelled ...int) (order []string) {
	t.Helper()
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	require.NoError(t, q.acquire(t.Context(), "holder"))
	gone := errors.New("gone")
	ends := make([]context.CancelCauseFunc, len(callers))
	for i, owner := range callers {
		var ctx context.Context
		ctx, ends[i] = context.WithCancelCause(t.Context())
		all.Go(func() {
			if err := q.acquire(ctx, owner); err != nil {
				require.Equal(t, gone, err)
				return
			}
			mu.Lock()
			order = append(order, fmt.Sprint(owner, i))
			mu.Unlock()
			q.release(owner)
		})
		synctest.Wait()
	}
	for _, i := range cancelled {
		ends[i](gone)
	}
	synctest.Wait()
	q.release("holder")
	all.Wait()
	return order
}

// Clause N6.
func TestOwnersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 1)
		require.Equal(t, []string{"a0", "b3", "c5", "a1", "b4", "a2"},
			arrive(t, q, []string{"a", "a", "a", "b", "b", "c"}))
		require.Equal(t, []string{"a0", "a2"}, arrive(t, q, []string{"a", "b", "a", "a"}, 1, 3),
			"others have left")
		require.Equal(t, []string{"b1"}, arrive(t, q, []string{"a", "b"}, 0))
	})
}

// A place that is given to a caller who leaves at that moment is not lost.
func TestNoPlaceIsLost(t *testing.T) {
	q := newQueue(2, 2)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if owner := fmt.Sprint(i % 5); q.acquire(ctx, owner) == nil {
					q.release(owner)
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.NoError(t, q.acquire(t.Context(), "x"))
	require.NoError(t, q.acquire(t.Context(), "x"))
}
