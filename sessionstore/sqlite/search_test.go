package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// finds returns how many messages a search finds.
func finds(t testing.TB, s *Store, text string) int {
	t.Helper()
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: text})
	require.NoError(t, err)
	return len(found)
}

// A history of 100,000 updates is indexed in pieces that let others write, and what tools returned
// is not.
func TestSearchLongHistory(t *testing.T) {
	s := New(Options{Dir: t.TempDir()})
	defer s.Close()
	lease := storetest.Create(t, s, "one")
	for i := range 100 {
		segment := append(updates(990), sessionstore.StoredUpdate(
			[]byte(`{"update":{"sessionUpdate":"tool_call","toolCallId":"1"}}`)))
		segment = append(segment,
			storetest.Said(fmt.Sprintf("message%d ", i), "continued", " here")...)
		require.NoError(t, s.Append(t.Context(), lease, segment))
	}
	require.Equal(t, 1, finds(t, s, `"message99 continued here"`))
	require.Equal(t, 1, finds(t, s, `"message0 continued here"`))
	require.Equal(t, sessionstore.MaxFoundInSession, finds(t, s, "continued"))
	require.Zero(t, finds(t, s, "xxx"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Search(ctx, sessionstore.SearchQuery{Text: "continued"})
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkSearch searches 10,000 sessions with some 20 messages each.
func BenchmarkSearch(b *testing.B) {
	s := New(Options{Dir: b.TempDir()})
	defer s.Close()
	for i := range 10_000 {
		lease := storetest.Create(b, s, fmt.Sprint(i))
		var segment []sessionstore.Update
		for j := range 10 {
			segment = append(segment, storetest.Said(fmt.Sprintf("The answer %d of session%d "+
				"mentions word%d and word%d, and a few others that many answers have in common.",
				j, i, (i*7+j)%3000, (i+j*13)%500))...)
			segment = append(segment, sessionstore.StoredUpdate(fmt.Appendf(nil,
				`{"update":{"sessionUpdate":"tool_call","toolCallId":"%d","title":"Read file%d.go"}}`, j, (i+j)%200)))
		}
		require.NoError(b, s.Append(b.Context(), lease, segment))
	}
	start := time.Now()
	require.Equal(b, 1, len(must(s.Search(b.Context(), sessionstore.SearchQuery{Text: `"session77" "answer 2"`}))))
	b.Logf("indexed in %s", time.Since(start))
	for _, text := range []string{"session77", "word7", "answers common", "a", "an", `"few others" word4`, "session77 file7", "nothing"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				must(s.Search(b.Context(), sessionstore.SearchQuery{Text: text}))
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
