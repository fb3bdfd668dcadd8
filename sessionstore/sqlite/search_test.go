package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// says returns a chunk of the agent's message.
func says(words string) sessionstore.Update {
	return sessionstore.StoredUpdate(fmt.Appendf(nil,
		`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}`, words))
}

// answer records a turn with an answer.
func answer(t testing.TB, s *Store, l sessionstore.Lease, words ...string) {
	t.Helper()
	number, err := s.BeginTurn(t.Context(), l, sessionstore.Turn{})
	require.NoError(t, err)
	for _, w := range words {
		require.NoError(t, s.Append(t.Context(), l, []sessionstore.Update{says(w)}))
	}
	require.NoError(t, s.EndTurn(t.Context(), l, number))
}

// finds returns how many messages a search finds.
func finds(t testing.TB, s *Store, text string) int {
	t.Helper()
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: text})
	require.NoError(t, err)
	return len(found)
}

// Random words have little in common, by which the index could shorten them.
//
// Clause S10.
func TestDeleteErasesIndex(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), purgeDelay: time.Millisecond})
	const sessions, wordsEach = 24, 12
	words := make([][]string, sessions)
	leases := make([]sessionstore.Lease, sessions)
	for i := range leases {
		leases[i] = made(t, s, fmt.Sprint(i))
	}
	for range wordsEach {
		for i, l := range leases {
			word := strings.ToLower(rand.Text())
			words[i] = append(words[i], word)
			answer(t, s, l, "the "+word)
		}
	}
	for i, l := range leases {
		if i%4 != 0 {
			require.NoError(t, s.Delete(t.Context(), l.ID))
			require.Zero(t, finds(t, s, words[i][0]))
		}
	}
	require.Eventually(t, func() bool { return s.Purged() }, time.Minute, time.Millisecond)
	var content []byte // of all files
	read := func() {
		files, err := filepath.Glob(filepath.Join(s.Dir(), fileName+"*"))
		require.NoError(t, err)
		for _, f := range files {
			part := dirtest.Read(t, f)
			content = append(content, part...)
		}
	}
	require.NoError(t, s.Close())
	read()
	require.Contains(t, string(content), words[0][0])
	for i, some := range words {
		for _, word := range some {
			for from := 0; from+8 <= len(word); from += 4 {
				if i%4 == 0 {
					break
				}
				require.False(t, bytes.Contains(content, []byte(word[from:from+8])), "a part of a word of session %d", i)
			}
		}
	}
	again := New(Options{Dir: s.Dir()})
	defer again.Close()
	for i, some := range words {
		require.Equal(t, i%4 == 0, finds(t, again, some[3]) == 1)
	}
	execute(t, again, "INSERT INTO words (words) VALUES ('integrity-check')")
}

// A history of 100,000 updates is indexed in pieces that let others write, and what tools returned
// is not.
func TestSearchLongHistory(t *testing.T) {
	s := New(Options{Dir: t.TempDir()})
	defer s.Close()
	lease := made(t, s, "one")
	for i := range 100 {
		segment := append(updates(990), sessionstore.StoredUpdate(
			[]byte(`{"update":{"sessionUpdate":"tool_call","toolCallId":"1"}}`)))
		segment = append(segment, says(fmt.Sprintf("message%d ", i)), says("continued"), says(" here"))
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
		lease := made(b, s, fmt.Sprint(i))
		var segment []sessionstore.Update
		for j := range 10 {
			segment = append(segment, says(fmt.Sprintf("The answer %d of session%d mentions word%d and word%d, and a few others that "+
				"many answers have in common.", j, i, (i*7+j)%3000, (i+j*13)%500)), sessionstore.StoredUpdate(fmt.Appendf(nil,
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
