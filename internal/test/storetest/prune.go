package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func pruneTests() []testCase {
	return []testCase{
		{"S10/prune unused sessions", pruneUnused},
		{"S10/prune no session that is used meanwhile", pruneWhileUsing},
		{"S10/prune without a bound and as a dry run", pruneNothing},
		{"N6/size of an owner's sessions", sizeOfSessions},
	}
}

// some creates three sessions: an unused one, one with a turn, and one with a history of its agent.
func some(t *testing.T, s store) (unused sessionstore.Lease) {
	t.Helper()
	unused = Create(t, s, "unused")
	record(t, s, Create(t, s, "used"), "hello", say("there"))
	Create(t, s, "imported")
	activate(t, s, "imported", sessionstore.Activation{
		History: newDraft(t, s, "imported", say("from elsewhere")),
	})
	return unused
}

// latest returns a time after the activity of every session.
func latest(t *testing.T, s store) time.Time {
	t.Helper()
	var last time.Time
	for _, session := range listAll(t, s, sessionstore.Query{}) {
		if session.Updated.After(last) {
			last = session.Updated
		}
	}
	return last.Add(time.Millisecond)
}

func prune(t *testing.T, s store, q sessionstore.PruneQuery) int {
	t.Helper()
	n, err := s.Prune(t.Context(), q)
	require.NoError(t, err)
	return n
}

func pruneUnused(t *testing.T, s store) {
	lease := some(t, s)
	require.Zero(t, prune(t, s, sessionstore.PruneQuery{UnusedBefore: get(t, s, "unused").Updated}), "the bound is exclusive")
	q := sessionstore.PruneQuery{UnusedBefore: latest(t, s)}
	require.Equal(t, 1, prune(t, s, q))
	require.ElementsMatch(t, []string{"used", "imported"}, ids(listAll(t, s, sessionstore.Query{})))
	require.ErrorAs(t, s.Append(t.Context(), lease, nil), new(*sessionstore.NotFoundError))
	require.Zero(t, prune(t, s, q), "again")
	require.Len(t, history(t, s, "used"), 2)
}

func pruneWhileUsing(t *testing.T, s store) {
	var unused []sessionstore.Lease
	for i := range 20 {
		unused = append(unused, Create(t, s, fmt.Sprint("session ", i)))
	}
	pruned := make(chan error)
	q := sessionstore.PruneQuery{UnusedBefore: latest(t, s)}
	go func() {
		_, err := s.Prune(t.Context(), q)
		pruned <- err
	}()
	var used []string
	for _, lease := range slices.Backward(unused) {
		if s.Append(t.Context(), lease, []sessionstore.Update{say("hello")}) == nil {
			used = append(used, string(lease.ID))
		}
	}
	require.NoError(t, <-pruned)
	require.ElementsMatch(t, used, ids(listAll(t, s, sessionstore.Query{})))
}

func pruneNothing(t *testing.T, s store) {
	some(t, s)
	require.Zero(t, prune(t, s, sessionstore.PruneQuery{}))
	require.Equal(t, 1, prune(t, s, sessionstore.PruneQuery{UnusedBefore: latest(t, s), DryRun: true}))
	require.Equal(t, 3, prune(t, s, sessionstore.PruneQuery{Before: latest(t, s), DryRun: true}))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 3)
}

func sizeOfSessions(t *testing.T, s store) {
	size := func(s store) int {
		n, err := s.Size(t.Context())
		require.NoError(t, err)
		return n
	}
	require.Zero(t, size(s))
	l := Create(t, s, "one")
	require.Equal(t, sessionstore.SessionBytes, size(s))
	const long = 1 << 20
	record(t, s, l, strings.Repeat("x", long), say(strings.Repeat("y", long)))
	full := size(s)
	require.InDelta(t, 2*long, full, 10<<10)
	fork(t, s, "one", sessionstore.Session{ID: "two"})
	require.Greater(t, size(s), full)
	require.Zero(t, size(s.(sessionstore.Shared).For("somebody else")))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.NoError(t, s.Delete(t.Context(), "two"))
	require.Zero(t, size(s))
}
