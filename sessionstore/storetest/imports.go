package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func imports() []contract {
	return []contract{
		{"A31/an imported session is like any other", importedIsOne},
		{"A29/importing again takes over the title and newer activity only", importAgain},
		{"A28/a deleted session is not imported again", importDeleted},
		{"a session that was opened here is not imported as another", importOpened},
		{"A28/a session of the runtime that was given up for another is not imported", importGivenUp},
		{"a session that saves the name of an imported one is that one", importedMeanwhile},
		{"A14/a fork has no name until it saves its own", forkHasNoName},
		{"A31/a name is its agent's own", namesOfAgents},
		{"an import is all or nothing", importWhole},
		{"S10/an imported session is not pruned as never used", importedIsNotUnused},
	}
}

// foreign is a session that a runtime calls name.
func foreign(t require.TestingT, name string) sessionstore.Imported {
	return sessionstore.Imported{
		ID: sessionstore.ID("id of " + name), StateKey: name, State: []byte("state of " + name),
		Keys: keys(t, "app"), Title: "title of " + name, Updated: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC),
	}
}

func bring(t *testing.T, s store, sessions ...sessionstore.Imported) (added int) {
	t.Helper()
	added, err := s.Import(t.Context(), explore(), sessions)
	require.NoError(t, err)
	return added
}

func importedIsOne(t *testing.T, s store) {
	a, b := foreign(t, "a"), foreign(t, "b")
	a.Keys, b.Updated, b.Title = linked(t, "link", []string{"lib"}, []string{"app", "lib"}), time.Time{}, ""
	require.Equal(t, 2, bring(t, s, a, b))
	got := get(t, s, "id of a")
	require.Equal(t, a.Updated.Truncate(time.Millisecond), got.Updated)
	require.Equal(t, "title of a", got.Title)
	require.Equal(t, "a", got.StateKey)
	require.Equal(t, a.State, got.State)
	require.Equal(t, explore(), got.Agent)
	require.Zero(t, got.Turns)
	requireKeys(t, a.Keys, got.Keys)
	require.Equal(t, []string{"id of b", "id of a"}, ids(listAll(t, s, sessionstore.Query{Agent: explore()})), "activity of an unknown time is now")
	require.Empty(t, history(t, s, "id of a"))

	lease, err := s.Activate(t.Context(), "id of a", sessionstore.Activation{Keys: keys(t, "app"), History: drafted(t, s, "id of a", say("theirs"))})
	require.NoError(t, err)
	record(t, s, lease, "hello", say("there"))
	require.Len(t, history(t, s, "id of a"), 3)
	require.Equal(t, "a", get(t, s, "id of a").StateKey)
}

func importAgain(t *testing.T, s store) {
	a := foreign(t, "a")
	require.Equal(t, 1, bring(t, s, a))
	require.Zero(t, bring(t, s, a))
	before := get(t, s, "id of a")
	again := a
	again.ID, again.State, again.Keys, again.Title = "another", []byte("another"), keys(t, "lib"), ""
	again.Updated = a.Updated.Add(-time.Hour)
	require.Zero(t, bring(t, s, again))
	require.Equal(t, before, get(t, s, "id of a"), "older, and without a title")
	again.Title, again.Updated = "renamed", a.Updated.Add(time.Hour)
	require.Zero(t, bring(t, s, again))
	before.Title, before.Updated = "renamed", again.Updated.Truncate(time.Millisecond)
	require.Equal(t, before, get(t, s, "id of a"))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 1)
}

func importDeleted(t *testing.T, s store) {
	a, b := foreign(t, "a"), foreign(t, "b")
	bring(t, s, a, b)
	require.NoError(t, s.Delete(t.Context(), "id of a"))
	require.Equal(t, 1, prune(t, s, sessionstore.PruneQuery{Before: b.Updated.Add(time.Hour)}))
	require.Zero(t, bring(t, s, a, b))
	require.Empty(t, listAll(t, s, sessionstore.Query{}))
	lease := create(t, s, "one")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "a"), "the runtime has one of that name again")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), ""))
	require.Equal(t, 1, bring(t, s, a, b))
}

func importOpened(t *testing.T, s store) {
	lease, err := s.Create(t.Context(), sessionstore.NewSession{
		ID: "one", Agent: explore(), Keys: keys(t, "app"), State: []byte("x"), StateKey: "a",
	})
	require.NoError(t, err)
	a, b := foreign(t, "a"), foreign(t, "b")
	require.Zero(t, bring(t, s, a))
	require.Equal(t, "title of a", get(t, s, "one").Title)
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("y"), "b"))
	require.Zero(t, bring(t, s, a, b), "neither what it is nor what it was")
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), State: []byte("z"), StateKey: "c"})
	require.NoError(t, err)
	require.Equal(t, "c", get(t, s, "one").StateKey)
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app")})
	require.NoError(t, err)
	require.Equal(t, "c", get(t, s, "one").StateKey, "no state leaves it")
}

func importGivenUp(t *testing.T, s store) {
	a, b, c := foreign(t, "a"), foreign(t, "b"), foreign(t, "c")
	bring(t, s, a)
	lease, err := s.Activate(t.Context(), "id of a", sessionstore.Activation{Keys: keys(t, "app"), State: []byte("x"), StateKey: "b"})
	require.NoError(t, err)
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("y"), "b"), "the same name gives up nothing")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("y"), "c"))
	require.Zero(t, bring(t, s, a, b, c))
	require.Equal(t, []string{"id of a"}, ids(listAll(t, s, sessionstore.Query{})))

	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "a"), "it goes back to the first")
	require.Equal(t, "a", get(t, s, "id of a").StateKey)
	require.Zero(t, bring(t, s, a, b, c))
	a.Title = "renamed"
	require.Zero(t, bring(t, s, a))
	require.Equal(t, "renamed", get(t, s, "id of a").Title)

	require.NoError(t, s.Delete(t.Context(), "id of a"))
	require.Zero(t, bring(t, s, a, b, c))
	added, err := s.Import(t.Context(), sessionstore.Agent{Kind: "proxy", Profile: "child"}, []sessionstore.Imported{b})
	require.NoError(t, err)
	require.Equal(t, 1, added, "another agent's own of that name")
}

func importedMeanwhile(t *testing.T, s store) {
	lease := create(t, s, "one")
	bring(t, s, foreign(t, "a"), foreign(t, "b"))
	used, err := s.Activate(t.Context(), "id of b", sessionstore.Activation{Keys: keys(t, "app")})
	require.NoError(t, err)
	record(t, s, used, "hello")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "a"))
	require.ElementsMatch(t, []string{"one", "id of b"}, ids(listAll(t, s, sessionstore.Query{})), "what was never used goes")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "b"))
	require.ElementsMatch(t, []string{"one", "id of b"}, ids(listAll(t, s, sessionstore.Query{})))
	require.Empty(t, get(t, s, "id of b").StateKey)
	require.Len(t, history(t, s, "id of b"), 1)
	require.Equal(t, "b", get(t, s, "one").StateKey)
}

func forkHasNoName(t *testing.T, s store) {
	bring(t, s, foreign(t, "a"))
	lease, err := s.Fork(t.Context(), "id of a", sessionstore.NewSession{ID: "fork", Agent: explore(), Keys: keys(t, "app")})
	require.NoError(t, err)
	require.Equal(t, []byte("state of a"), get(t, s, "fork").State)
	require.Empty(t, get(t, s, "fork").StateKey)
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "b"))
	require.Equal(t, "b", get(t, s, "fork").StateKey)
	require.Equal(t, "a", get(t, s, "id of a").StateKey)
	_, err = s.Fork(t.Context(), "id of a", sessionstore.NewSession{
		ID: "named", Agent: explore(), Keys: keys(t, "app"), State: []byte("y"), StateKey: "c",
	})
	require.NoError(t, err)
	require.Equal(t, "c", get(t, s, "named").StateKey)
}

func namesOfAgents(t *testing.T, s store) {
	bring(t, s, foreign(t, "a"))
	other := foreign(t, "a")
	other.ID = "other"
	added, err := s.Import(t.Context(), sessionstore.Agent{Kind: "proxy", Profile: "child"}, []sessionstore.Imported{other})
	require.NoError(t, err)
	require.Equal(t, 1, added)
	require.NoError(t, s.Delete(t.Context(), "other"))
	require.Zero(t, bring(t, s, foreign(t, "a")))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 1)
}

func importWhole(t *testing.T, s store) {
	for name, bad := range map[string]sessionstore.Imported{
		"no name":  {ID: "x", Keys: keys(t, "app")},
		"no roots": {ID: "x", StateKey: "x"},
	} {
		_, err := s.Import(t.Context(), explore(), []sessionstore.Imported{foreign(t, "a"), bad})
		require.Error(t, err, name)
	}
	require.Empty(t, listAll(t, s, sessionstore.Query{}))
	var many []sessionstore.Imported
	for i := range 500 {
		many = append(many, foreign(t, fmt.Sprint(i)))
	}
	require.Equal(t, 500, bring(t, s, many...))
	require.Zero(t, bring(t, s, many...))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 500)
}

func importedIsNotUnused(t *testing.T, s store) {
	create(t, s, "unused")
	bring(t, s, foreign(t, "a"))
	require.Equal(t, 1, prune(t, s, sessionstore.PruneQuery{UnusedBefore: latest(t, s)}))
	require.Equal(t, []string{"id of a"}, ids(listAll(t, s, sessionstore.Query{})))
}
