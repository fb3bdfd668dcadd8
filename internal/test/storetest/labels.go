package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func labelTests() []testCase {
	return []testCase{
		{"A16/archived sessions are listed as the filter says", archive},
		{"A29/a title that a client chose stays", rename},
		{"A28/labels of unknown and deleted sessions", labelUnknown},
		{"A35/unused sessions are left out", leaveOutUnused},
		{"A35/a session that its agent lists with later activity is not unused", usedElsewhere},
		{"P6/_meta of the agent's list is kept", keepMeta},
	}
}

func archive(t *testing.T, s store) {
	lease := create(t, s, "one")
	record(t, s, lease, "hello")
	create(t, s, "two")
	before := get(t, s, "one")
	require.NoError(t, s.Archive(t.Context(), "one"))
	require.NoError(t, s.Archive(t.Context(), "one"), "again")
	after := get(t, s, "one")
	require.True(t, after.Archived)
	after.Archived = false
	require.Equal(t, before, after, "nothing else changed")
	require.NoError(t, s.Append(t.Context(), lease, nil))
	listed := func(f sessionstore.ArchiveFilter) []string {
		all := []string{}
		for _, session := range listAll(t, s, sessionstore.Query{Agent: explore(), Archive: f, Limit: 1}) {
			require.Equal(t, session.Archived, get(t, s, string(session.ID)).Archived)
			all = append(all, string(session.ID))
		}
		return all
	}
	require.ElementsMatch(t, []string{"one", "two"}, listed(sessionstore.ArchivedToo))
	require.Equal(t, []string{"two"}, listed(sessionstore.WithoutArchived))
	require.Equal(t, []string{"one"}, listed(sessionstore.OnlyArchived))

	record(t, s, lease, "more")
	require.Equal(t, []string{"one"}, listed(sessionstore.OnlyArchived), "a turn does not bring it back")
	_, err := s.Fork(t.Context(), "one", sessionstore.Session{ID: "fork", Agent: explore(), Keys: keys(t, "app")})
	require.NoError(t, err)
	require.False(t, get(t, s, "fork").Archived)
	require.NoError(t, s.Unarchive(t.Context(), "one"))
	require.NoError(t, s.Unarchive(t.Context(), "two"), "it is not archived")
	require.Empty(t, listed(sessionstore.OnlyArchived))
	require.Len(t, listed(sessionstore.WithoutArchived), 3)

	theirs := listedByAgent(t, "a")
	theirs.Archived = true
	require.Equal(t, 1, importSessions(t, s, theirs))
	require.Equal(t, []string{"id of a"}, listed(sessionstore.OnlyArchived))
	require.NoError(t, s.Unarchive(t.Context(), "id of a"))
	require.Zero(t, importSessions(t, s, theirs))
	require.Empty(t, listed(sessionstore.OnlyArchived), "only new sessions are archived as the agent says")

	first := list(t, s, sessionstore.Query{Archive: sessionstore.WithoutArchived, Limit: 1})
	_, err = s.List(t.Context(), sessionstore.Query{Cursor: first.Next})
	require.ErrorAs(t, err, new(*sessionstore.CursorError), "a cursor is valid for its filter only")
}

func rename(t *testing.T, s store) {
	lease, all := create(t, s, "one"), []string{"one"}
	importSessions(t, s, listedByAgent(t, "a"))
	all = append(all, "id of a")
	for _, id := range all {
		before := get(t, s, id)
		require.NoError(t, s.Rename(t.Context(), sessionstore.ID(id), "chosen"))
		after := get(t, s, id)
		require.Equal(t, "chosen", after.Title)
		require.True(t, after.Renamed)
		after.Title, after.Renamed = before.Title, false
		require.Equal(t, before, after, "nothing else changed")
	}
	again := listedByAgent(t, "a")
	again.Title = "the agent's"
	require.Zero(t, importSessions(t, s, again))
	require.Equal(t, "chosen", get(t, s, "id of a").Title)
	begin(t, s, lease, sessionstore.Turn{Title: "from the prompt"})
	require.NoError(t, s.SetTitle(t.Context(), lease, "generated"))
	require.Equal(t, "chosen", get(t, s, "one").Title)
	for _, session := range listAll(t, s, sessionstore.Query{}) {
		require.True(t, session.Renamed)
	}
	for _, id := range all {
		require.NoError(t, s.Rename(t.Context(), sessionstore.ID(id), ""))
		require.Empty(t, get(t, s, id).Title)
		require.False(t, get(t, s, id).Renamed)
	}
	begin(t, s, lease, sessionstore.Turn{Title: "from the prompt"})
	require.Equal(t, "from the prompt", get(t, s, "one").Title)
	require.NoError(t, s.SetTitle(t.Context(), lease, "generated"))
	require.Equal(t, "generated", get(t, s, "one").Title)
}

func labelUnknown(t *testing.T, s store) {
	create(t, s, "gone")
	require.NoError(t, s.Archive(t.Context(), "gone"))
	require.NoError(t, s.Rename(t.Context(), "gone", "x"))
	require.NoError(t, s.Delete(t.Context(), "gone"))
	for _, id := range []sessionstore.ID{"gone", "unknown"} {
		require.ErrorAs(t, s.Rename(t.Context(), id, "x"), new(*sessionstore.NotFoundError))
		require.ErrorAs(t, s.Archive(t.Context(), id), new(*sessionstore.NotFoundError))
		require.ErrorAs(t, s.Unarchive(t.Context(), id), new(*sessionstore.NotFoundError))
	}
	create(t, s, "gone")
	got := get(t, s, "gone")
	require.False(t, got.Archived || got.Renamed)
	require.Empty(t, got.Title)
}

func leaveOutUnused(t *testing.T, s store) {
	some(t, s)
	used := []string{"used", "imported", "fork"}
	importSessions(t, s, listedByAgent(t, "a"))
	used = append(used, "id of a")
	create(t, s, "open")
	create(t, s, "archived")
	require.NoError(t, s.Archive(t.Context(), "archived"))
	_, err := s.Fork(t.Context(), "used", sessionstore.Session{ID: "fork", Agent: explore(), Keys: keys(t, "app")})
	require.NoError(t, err)
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
	_, err := s.Create(t.Context(), sessionstore.Session{ID: "one", Agent: explore(), Keys: keys(t, "app"), State: []byte("x"), StateKey: "a"})
	require.NoError(t, err)
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

func keepMeta(t *testing.T, s store) {
	meta := json.RawMessage(`{"branch":"main","n":1.0}`)
	created, err := s.Create(t.Context(), sessionstore.Session{ID: "one", Agent: explore(), Keys: keys(t, "app"), State: []byte("x"), StateKey: "b"})
	require.NoError(t, err)
	a, b := listedByAgent(t, "a"), listedByAgent(t, "b")
	a.Meta, b.Meta = meta, meta
	require.Equal(t, 1, importSessions(t, s, a, b))
	for _, session := range listAll(t, s, sessionstore.Query{}) {
		require.Equal(t, string(meta), string(session.Meta), session.ID)
		require.Equal(t, string(meta), string(get(t, s, string(session.ID)).Meta))
	}
	a.Meta = nil
	require.Zero(t, importSessions(t, s, a))
	require.Nil(t, get(t, s, "id of a").Meta)
	require.NoError(t, s.SaveState(t.Context(), created, []byte("y"), "c"))
	require.Nil(t, get(t, s, "one").Meta, "it was that of another session of the agent")
}
