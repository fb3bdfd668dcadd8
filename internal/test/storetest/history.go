package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func historyTests() []testCase {
	return []testCase{
		{"S9/a long history is complete and in order", longHistory},
		{"S9/others write while a history is read, which does not see that", writtenWhileRead},
		{"a history can be read again, and in part", readAgain},
		{"a history can be read from any segment on", readFromSegment},
		{"P7/readers go on when an activation adds to the history", extendedWhileRead},
		{"S9/a deleted history ends its readers, who read a page ahead", deletedEndsReaders},
		{"a cancelled context ends a reader", contextEndsReader},
	}
}

// fill appends segments that need several pages in any store.
func fill(t *testing.T, s store, l sessionstore.Lease, segments int) []update {
	t.Helper()
	var all []update
	for i := range segments {
		var segment []update
		for j := range 40 {
			segment = append(segment, say(fmt.Sprintf("%d.%d %s", i, j, strings.Repeat("x", 1500))))
		}
		require.NoError(t, s.Append(t.Context(), l, segment))
		all = append(all, segment...)
	}
	return all
}

func longHistory(t *testing.T, s store) {
	lease := Create(t, s, "one")
	Create(t, s, "two")
	want := fill(t, s, lease, 30)
	huge := []update{say("a"), say(strings.Repeat("h", 3<<20)), say("z")}
	require.NoError(t, s.Append(t.Context(), lease, huge))
	require.Equal(t, texts(append(want, huge...)...), history(t, s, "one"))
	require.Empty(t, history(t, s, "two"))
}

func writtenWhileRead(t *testing.T, s store) {
	lease := Create(t, s, "one")
	want := fill(t, s, lease, 20)
	var got []string
	for u, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		if got = append(got, u.String()); len(got)%100 == 0 {
			require.NoError(t, s.Append(t.Context(), lease, []update{say("later")}))
			record(t, s, Create(t, s, fmt.Sprint(len(got))), "written", say("while another is read"))
		}
	}
	require.Equal(t, texts(want...), got)
	require.Greater(t, len(history(t, s, "one")), len(want))
}

func readAgain(t *testing.T, s store) {
	lease := Create(t, s, "one")
	seq := s.History(t.Context(), "one")
	want := fill(t, s, lease, 2)
	for range 2 {
		n := 0
		for u, err := range seq {
			require.NoError(t, err)
			u.Raw[0] = '!' // the updates are the caller's
			if n++; n == 5 {
				break
			}
		}
		require.Equal(t, 5, n)
	}
	require.Equal(t, texts(want...), history(t, s, "one"))
}

func readFromSegment(t *testing.T, s store) {
	lease := Create(t, s, "source")
	record(t, s, lease, "prompt", say("a"), say("b"))
	lease = fork(t, s, "source", sessionstore.Session{ID: "one"})
	record(t, s, lease, "more", say("c"))
	var read []sessionstore.Segment
	for segment, err := range s.Segments(t.Context(), "one", 0) {
		require.NoError(t, err)
		read = append(read, segment)
	}
	require.NotEmpty(t, read)
	for i := range read {
		var rest []sessionstore.Segment
		for segment, err := range s.Segments(t.Context(), "one", read[i].Number) {
			require.NoError(t, err)
			rest = append(rest, segment)
		}
		require.ElementsMatch(t, read[i+1:], rest)
	}
	var all []string
	for _, segment := range read {
		for u := range sessionstore.Unpack(segment.Body) {
			all = append(all, u.String())
		}
	}
	require.Equal(t, history(t, s, "one"), all)
	require.Len(t, all, 5)
	for segment, err := range s.Segments(t.Context(), "one", -1) {
		require.NoError(t, err)
		require.Equal(t, read[0], segment, "as from the beginning")
		break
	}
	for _, err := range s.Segments(t.Context(), "none", 0) {
		require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	}
}

// interrupted calls disturb in the middle of reading a long history, and returns the error that
// ended it.
func interrupted(t *testing.T, s store, disturb func()) error {
	t.Helper()
	lease := Create(t, s, "one")
	want := len(fill(t, s, lease, 20))
	fork(t, s, "one", sessionstore.Session{ID: "fork"})
	read := 0
	for _, err := range s.History(t.Context(), "one") {
		if err != nil {
			require.Less(t, read, 3*want/4)
			require.Len(t, history(t, s, "fork"), want, "the fork is unaffected")
			return err
		}
		if read++; read == 50 {
			disturb()
		}
	}
	return nil
}

func extendedWhileRead(t *testing.T, s store) {
	err := interrupted(t, s, func() {
		activate(t, s, "one", sessionstore.Activation{History: newDraft(t, s, "one", say("new"))})
	})
	require.NoError(t, err)
}

func deletedEndsReaders(t *testing.T, s store) {
	err := interrupted(t, s, func() { require.NoError(t, s.Delete(t.Context(), "one")) })
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func contextEndsReader(t *testing.T, s store) {
	lease := Create(t, s, "one")
	fill(t, s, lease, 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range s.History(ctx, "one") {
		cancel()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
}
