package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func updates(n int) []sessionstore.Update {
	out := make([]sessionstore.Update, n)
	for i := range out {
		out[i] = sessionstore.StoredUpdate(fmt.Appendf(nil, `{"update":{"sessionUpdate":"tool_call_update","toolCallId":"%06d","content":%q}}`, i, strings.Repeat("x", 100)))
	}
	return out
}

// BenchmarkWriteWhileErasing appends to a session while another process's store deletes sessions
// and erases what they leave, and reports how long that took: the longest should take 20 ms.
//
// Clause S10.
func BenchmarkWriteWhileErasing(b *testing.B) {
	fill := func(b *testing.B, s *Store, sessions, segments, updatesEach int) {
		for i := range sessions {
			lease := storetest.Create(b, s, fmt.Sprint(i))
			for range segments {
				require.NoError(b, s.Append(b.Context(), lease, updates(updatesEach)))
			}
		}
	}
	b.Run("10,000 sessions", func(b *testing.B) {
		writeMeanwhile(b, func(s *Store) { fill(b, s, 10_000, 1, 20) }, func(s *Store) error {
			_, err := s.Prune(b.Context(), sessionstore.PruneQuery{Before: time.Now()})
			return err
		})
	})
	b.Run("a session of 60 MB", func(b *testing.B) {
		writeMeanwhile(b, func(s *Store) { fill(b, s, 1, 900, 350) }, func(s *Store) error {
			return s.Delete(b.Context(), "0")
		})
	})
}

// writeMeanwhile measures appending to a store that another process's store has filled, while that
// one deletes and erases.
func writeMeanwhile(b *testing.B, fill func(*Store), remove func(*Store) error) {
	for b.Loop() {
		b.StopTimer()
		other := New(Options{Dir: b.TempDir(), purgeDelay: time.Millisecond})
		fill(other)
		time.Sleep(time.Millisecond)
		s := New(Options{Dir: other.Dir(), purgeDelay: time.Hour,
			Now: func() time.Time { return time.Now().Add(time.Hour) }})
		lease := storetest.Create(b, s, "kept")
		b.StartTimer()
		done := make(chan error)
		go func() {
			err := remove(other)
			for err == nil && !other.Purged() {
				time.Sleep(10 * time.Millisecond)
			}
			done <- errors.Join(err, other.Close())
		}()
		var took []time.Duration
		for open := true; open; {
			select {
			case err := <-done:
				require.NoError(b, err)
				open = false
			case <-time.After(time.Millisecond):
			}
			start := time.Now()
			require.NoError(b, s.Append(b.Context(), lease, updates(1)))
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		require.NoError(b, s.Close())
	}
}
