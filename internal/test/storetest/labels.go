package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func labelTests() []testCase {
	return []testCase{
		{"A35/unused sessions are left out", leaveOutUnused},
		{"A35/a session that its agent lists with later activity is not unused", usedElsewhere},
	}
}

func leaveOutUnused(t *testing.T, s store) {
	some(t, s)
	used := []string{"used", "imported", "fork"}
	importSessions(t, s, listedByAgent(t, "a"))
	used = append(used, "id of a")
	create(t, s, "open")
	create(t, s, "archived")
	require.NoError(t, s.Archive(t.Context(), "archived"))
	fork(t, s, "used", sessionstore.Session{ID: "fork"})
	all := append([]string{"unused", "open"}, used...)
	bound := latest(t, s)
	cwd := sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "app")}
	for _, q := range []sessionstore.Query{
		{}, {Agent: explore(), Limit: 2}, {Cwd: &cwd}, {Cwd: &cwd, Additional: &sessionstore.DirsFilter{}, Limit: 1},
	} {
		q.Archive = sessionstore.WithoutArchived
		require.ElementsMatch(t, all, ids(listAll(t, s, q)))
		q.Unused.Before = bound
		require.ElementsMatch(t, used, ids(listAll(t, s, q)))
		q.Unused.Keep = []sessionstore.ID{"open", "used", "unknown"}
		kept := listAll(t, s, q)
		require.ElementsMatch(t, append([]string{"open"}, used...), ids(kept))
		for i := 1; i < len(kept); i++ {
			require.False(t, kept[i].Updated.After(kept[i-1].Updated))
		}
		q.Unused.Before = get(t, s, "unused").Updated
		require.ElementsMatch(t, all, ids(listAll(t, s, q)), "those with activity since then are listed")
	}
	elsewhere := sessionstore.DirFilter{Spelling: dir(t, "lib"), Real: dir(t, "lib")}
	require.Empty(t, listAll(t, s, sessionstore.Query{Cwd: &elsewhere, Unused: sessionstore.UnusedFilter{Before: bound, Keep: []sessionstore.ID{"open"}}}))
	archived := ids(listAll(t, s, sessionstore.Query{
		Archive: sessionstore.OnlyArchived, Unused: sessionstore.UnusedFilter{Before: bound},
	}))
	require.Equal(t, []string{"archived"}, archived)
	require.NoError(t, s.Unarchive(t.Context(), "archived"))
	require.NotContains(t, ids(listAll(t, s, sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: bound}})), "archived")
	require.Empty(t, get(t, s, "unused").Turns, "it can be loaded")
}

func usedElsewhere(t *testing.T, s store) {
	lease := createAs(t, s, sessionstore.Session{ID: "used", State: []byte("x"), StateKey: "b"})
	record(t, s, lease, "hello")
	b := listedByAgent(t, "b")
	b.Updated = time.Now().Add(sessionstore.UnusedGrace + time.Hour)
	require.Zero(t, importSessions(t, s, b))
	require.False(t, accountOf(t, s, "used").Before, "it was used here first")
	require.NoError(t, s.Delete(t.Context(), "used"))

	createAs(t, s, sessionstore.Session{ID: "one", State: []byte("x"), StateKey: "a"})
	a := listedByAgent(t, "a")
	shown := func() []string {
		return ids(listAll(t, s, sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: latest(t, s)}}))
	}
	for _, a.Updated = range []time.Time{{}, get(t, s, "one").Created, get(t, s, "one").Created.Add(sessionstore.UnusedGrace)} {
		require.Zero(t, importSessions(t, s, a))
		require.Empty(t, shown(), "the agent only created it")
	}
	a.Updated = a.Updated.Add(time.Second)
	require.Zero(t, importSessions(t, s, a))
	require.Equal(t, []string{"one"}, shown())
	require.Zero(t, prune(t, s, sessionstore.PruneQuery{UnusedBefore: latest(t, s)}))
}
