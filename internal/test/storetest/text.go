package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func textTests() []testCase {
	return []testCase{
		{"N3/titles are cleaned", cleanTitles},
		{"N3/ids and agents are text", rejectedNames},
		{"N3/other values are bytes", anyBytes},
	}
}

// What PostgreSQL cannot hold as text, and as what it is kept in titles.
const strange, cleaned = "a\x00b\xffc\ud7ff", "a\uFFFDb\uFFFDc\ud7ff"

func cleanTitles(t *testing.T, s store) {
	n := sessionstore.Session{ID: "one", Agent: explore(), Keys: Keys(t, "app"), Title: strange}
	lease, err := s.Create(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, cleaned, get(t, s, "one").Title)
	require.NoError(t, s.SetTitle(t.Context(), lease, "2"+strange))
	require.Equal(t, "2"+cleaned, get(t, s, "one").Title)
	n.ID, n.Title = "fork", "3"+strange
	_, err = s.Fork(t.Context(), "one", n)
	require.NoError(t, err)
	require.Equal(t, "3"+cleaned, get(t, s, "fork").Title)
	Begin(t, s, Create(t, s, "two"), sessionstore.Turn{Title: strange})
	require.Equal(t, cleaned, get(t, s, "two").Title)
	require.NoError(t, s.Rename(t.Context(), "two", "4"+strange))
	require.Equal(t, "4"+cleaned, get(t, s, "two").Title)
	a := listedByAgent(t, "a")
	a.Title = "5" + strange
	require.Equal(t, 1, importSessions(t, s, a))
	require.Equal(t, "5"+cleaned, get(t, s, "id of a").Title)
	record(t, s, opened(t, s, "id of a"), "hello")
	a.Title = "6" + strange
	require.Zero(t, importSessions(t, s, a))
	require.Equal(t, "6"+cleaned, get(t, s, "id of a").Title)
}

func rejectedNames(t *testing.T, s store) {
	Create(t, s, "one")
	for _, bad := range []string{"a\x00", "\xff", "a\xc3"} {
		id, agent := sessionstore.ID(bad), sessionstore.Agent{Kind: "explore", Profile: bad}
		for _, n := range []sessionstore.Session{
			{ID: id, Agent: explore(), Keys: Keys(t, "app")},
			{ID: "two", Agent: agent, Keys: Keys(t, "app")},
			{ID: "two", Agent: sessionstore.Agent{Kind: bad}, Keys: Keys(t, "app")},
		} {
			_, err := s.Create(t.Context(), n)
			require.ErrorContains(t, err, "must be UTF-8 without NUL")
			_, err = s.Fork(t.Context(), "one", n)
			require.ErrorContains(t, err, "must be UTF-8 without NUL")
		}
		_, err := s.Get(t.Context(), id)
		require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
		require.NoError(t, s.Delete(t.Context(), id))
		require.Empty(t, listAll(t, s, sessionstore.Query{Agent: agent}))
		q := sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: latest(t, s), Keep: []sessionstore.ID{id, "one"}}}
		require.Equal(t, []string{"one"}, ids(listAll(t, s, q)))
		rejectedImports(t, s, id, agent)
	}
	require.Equal(t, []string{"one"}, ids(listAll(t, s, sessionstore.Query{})))
}

func rejectedImports(
	t *testing.T, s sessionstore.Store, id sessionstore.ID, agent sessionstore.Agent,
) {
	a := listedByAgent(t, "a")
	_, err := s.Import(t.Context(), agent, []sessionstore.Session{a}, false)
	require.ErrorContains(t, err, "must be UTF-8 without NUL")
	a.ID = id
	_, err = s.Import(t.Context(), explore(), []sessionstore.Session{a}, false)
	require.ErrorContains(t, err, "must be UTF-8 without NUL")
	_, err = s.Adopt(t.Context(), a, nil)
	require.ErrorContains(t, err, "must be UTF-8 without NUL")
	_, err = s.Named(t.Context(), agent, "a")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	require.Zero(t, retained(t, s, agent, sessionstore.Listed{Asked: time.Now()}))
}

func anyBytes(t *testing.T, s store) {
	a, b := listedByAgent(t, "a"), listedByAgent(t, "b")
	a.StateKey, a.State, a.Meta = "a\x00\xff", []byte("\x00\xff"), []byte(`{"a":"\u0000"}`)
	b.StateKey = "a\x00\xfe"
	require.Equal(t, 2, importSessions(t, s, a, b))
	require.Zero(t, importSessions(t, s, a, b), "they are known")
	got := get(t, s, "id of a")
	require.Equal(t, a.StateKey, got.StateKey)
	require.Equal(t, a.State, got.State)
	require.Equal(t, a.Meta, got.Meta)
	id, err := s.Named(t.Context(), explore(), b.StateKey)
	require.NoError(t, err)
	require.EqualValues(t, "id of b", id)
	require.NoError(t, s.Delete(t.Context(), "id of a"))
	require.Zero(t, importSessions(t, s, a), "it was deleted")
	lease := opened(t, s, "id of b")
	words := parse(`{"update":{"sessionUpdate":"agent_message_chunk","text":"\u0000` + "\xff" + `"}}`)
	require.NoError(t, s.Append(t.Context(), lease, []update{words}))
	all := history(t, s, "id of b")
	require.Equal(t, words.String(), all[len(all)-1])
}
