package server

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Each client gets its turn, whatever others have waiting.
func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, &transfers{since: map[*http.ResponseController]time.Time{}})
		granted := make(chan string, 100)
		begin := func(ctx context.Context, client string, n int) {
			go func() {
				if s.acquire(ctx, client, n) {
					granted <- client
				}
			}()
			synctest.Wait()
		}
		var order []string
		take := func() {
			for len(granted) > 0 {
				order = append(order, <-granted)
			}
		}
		for range 10 {
			begin(t.Context(), "a", 1)
		}
		gone, leave := context.WithCancel(t.Context())
		begin(gone, "b", 1)
		begin(gone, "b", 1)
		begin(t.Context(), "c", 1)
		take()
		require.Equal(t, []string{"a", "a", "a", "b"}, order)
		leave()
		synctest.Wait()
		s.release("b", 1)
		synctest.Wait()
		take()
		require.Equal(t, "c", order[4], "it has none")
		for range 7 {
			s.release("a", 1)
			synctest.Wait()
		}
		take()
		require.Len(t, order, 12)
		s.release("c", 1)
		for range 3 {
			s.release("a", 1)
		}
		begin(t.Context(), "d", 4) // a batch may have all
		take()
		require.Equal(t, "d", order[12], fmt.Sprint(order))
		s.release("d", 4)
		require.Empty(t, s.clients)
		require.Zero(t, s.taken)
	})
}
