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
		{"N6/an owner stores no more than the limit", limitOfAnOwner},
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

func limitOfAnOwner(t *testing.T, s store) {
	shared, ctx, long := s.(sessionstore.Shared), t.Context(), []update{say(strings.Repeat("y", 64<<10))}
	record(t, s, Create(t, s, "deleted"), "ask", long...)
	require.NoError(t, s.Delete(ctx, "deleted"))
	one := Create(t, s, "one")
	record(t, s, one, "ask", long...)
	draft := newDraft(t, s, "")
	shared.Limit("", 100<<10)
	number := Begin(t, s, one, sessionstore.Turn{})
	n := usual(t, sessionstore.Session{ID: "two", StateKey: "key", Updated: time.Now()})
	_, forked := s.Fork(ctx, "one", n)
	_, begun := s.BeginTurn(ctx, one, sessionstore.Turn{Prompt: long})
	n.Meta = long[0].Raw
	_, imported := s.Import(ctx, n.Agent, []sessionstore.Session{n}, false)
	_, adopted := s.Adopt(ctx, n, nil)
	for _, err := range []error{forked, begun, imported, adopted, draft.Append(ctx, long)} {
		require.ErrorAs(t, err, new(*sessionstore.QuotaError))
	}
	require.NoError(t, s.EndTurn(ctx, one, number, long...), "it had begun")
	n.Meta = nil
	_, restored := s.Restore(ctx, n, draft, nil)
	require.ErrorAs(t, restored, new(*sessionstore.QuotaError))
	Create(t, shared.For("somebody else"), "one")
	shared.Limit("", 0)
	fork(t, s, "one", n)
}
