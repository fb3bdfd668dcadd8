package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func importTests() []testCase {
	return []testCase{
		{"A31/an imported session has the time of its agent", importedTime},
		{"A29/importing again changes only the title and newer activity", importAgain},
		{"A29/an activity in the future is none", importFuture},
		{"A29/a title yields to a better one of the agent", importTitles},
		{"A31/a session that was listed when the agent was asked is kept", retainMeanwhile},
		{"an invalid session keeps the others from being imported", importWhole},
	}
}

// listedByAgent returns a session as an agent lists it.
func listedByAgent(t require.TestingT, name string) sessionstore.Session {
	return sessionstore.Session{
		ID: sessionstore.ID("id of " + name), Agent: explore(), StateKey: name, State: []byte("state of " + name),
		Keys: Keys(t, "app"), Title: "title of " + name, Updated: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC),
	}
}

func importSessions(t *testing.T, s store, sessions ...sessionstore.Session) (added int) {
	t.Helper()
	added, err := s.Import(t.Context(), explore(), sessions, false)
	require.NoError(t, err)
	return added
}

func importedTime(t *testing.T, s store) {
	a, b := listedByAgent(t, "a"), listedByAgent(t, "b")
	b.Updated = time.Time{}
	require.Equal(t, 2, importSessions(t, s, a, b))
	require.Equal(t, a.Updated.Truncate(time.Millisecond), get(t, s, "id of a").Updated)
	require.Equal(t, []string{"id of b", "id of a"}, ids(listAll(t, s, sessionstore.Query{Agent: explore()})), "an unknown time means now")
}

func importAgain(t *testing.T, s store) {
	a := listedByAgent(t, "a")
	require.Equal(t, 1, importSessions(t, s, a))
	require.Zero(t, importSessions(t, s, a))
	before := get(t, s, "id of a")
	again := a
	again.ID, again.State, again.Keys, again.Title = "another", []byte("another"), Keys(t, "lib"), ""
	again.Updated = a.Updated.Add(-time.Hour)
	require.Zero(t, importSessions(t, s, again))
	before.Listed = time.Time{} // it is in another folder there
	require.Equal(t, before, get(t, s, "id of a"), "older and without a title")
	again.Title, again.Updated = "renamed", a.Updated.Add(time.Hour)
	require.Zero(t, importSessions(t, s, again))
	before.Title, before.Updated = "renamed", again.Updated.Truncate(time.Millisecond)
	require.Equal(t, before, get(t, s, "id of a"))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 1)
}

func importFuture(t *testing.T, s store) {
	a, b := listedByAgent(t, "a"), listedByAgent(t, "b")
	future := time.Now().AddDate(10, 0, 0)
	a.Updated, b.Archived = future, true
	require.Equal(t, 2, importSessions(t, s, a, b))
	first := get(t, s, "id of a").Updated
	require.True(t, first.Before(future.AddDate(-1, 0, 0)), "it counts as now")
	b.Updated = future
	require.Zero(t, importSessions(t, s, a, b))
	require.Equal(t, first, get(t, s, "id of a").Updated)
	require.Equal(t, listedByAgent(t, "b").Updated.Truncate(time.Millisecond), get(t, s, "id of b").Updated)

	// A copy, or a clock that was wrong, may still bring one.
	copied := foreign(t, "c")
	copied.StateKey, copied.Updated = "c", future.Truncate(time.Millisecond).UTC()
	require.True(t, restore(t, s, copied))
	c := listedByAgent(t, "c")
	require.Zero(t, importSessions(t, s, c))
	require.Equal(t, c.Updated.Truncate(time.Millisecond), get(t, s, "c").Updated)
	prompted := func(id sessionstore.ID, updated time.Time) time.Time {
		copied.ID, copied.StateKey, copied.Updated = id, "", updated
		require.True(t, restore(t, s, copied))
		lease := activate(t, s, id, sessionstore.Activation{Keys: copied.Keys})
		Begin(t, s, lease, sessionstore.Turn{})
		return get(t, s, string(id)).Updated
	}
	require.True(t, prompted("d", copied.Updated).Before(future.AddDate(-1, 0, 0)), "a turn heals it")
	ahead := first.Add(time.Hour)
	require.Equal(t, ahead, prompted("e", ahead), "clocks differ")
}

func importTitles(t *testing.T, s store) {
	lease := createAs(t, s, sessionstore.Session{ID: "one", State: []byte("x"), StateKey: "a"})
	titled := func(title string) string {
		a := listedByAgent(t, "a")
		a.Title = title
		require.Zero(t, importSessions(t, s, a))
		return get(t, s, "one").Title
	}
	require.Empty(t, titled("anything"), "it is unused")
	Begin(t, s, lease, sessionstore.Turn{Title: "Fix the parser", Prompt: []update{
		text("user_message_chunk", "Sharing:\n- notes"), text("user_message_chunk", "Fix the\tparser\nand its tests"),
	}})
	for _, derived := range []string{
		"", "Fix the parser", "fix the parser and its tests", "Fix the par…", "Fix the p...", "Sharing: - notes Fix",
		"New session - 2026-01-02T03:04:05.678Z", "Child session - 2026-01-02T03:04:05.678Z", "Untitled", "New Chat",
	} {
		require.Equal(t, "Fix the parser", titled(derived), derived)
	}
	require.Equal(t, "Parser", titled("Parser"))
	require.Equal(t, "Parser", titled("Fix the parser"), "it was better")
	require.Equal(t, "Parser and tests", titled("Parser and tests"))
	fork(t, s, "one", sessionstore.Session{ID: "fork", State: []byte("x"), StateKey: "b"})
	fork := listedByAgent(t, "b")
	fork.Title = "Fix the parser"
	require.Zero(t, importSessions(t, s, fork))
	require.Equal(t, "Parser and tests", get(t, s, "fork").Title, "it has the same first prompt")
	require.NoError(t, s.Rename(t.Context(), "one", "chosen"))
	require.Equal(t, "chosen", titled("Lexer"))
}

func importWhole(t *testing.T, s store) {
	for name, bad := range map[string]sessionstore.Session{
		"no name":  {ID: "x", Keys: Keys(t, "app")},
		"no roots": {ID: "x", StateKey: "x"},
	} {
		_, err := s.Import(t.Context(), explore(), []sessionstore.Session{listedByAgent(t, "a"), bad}, false)
		require.Error(t, err, name)
	}
	require.Empty(t, listAll(t, s, sessionstore.Query{}))
	var many []sessionstore.Session
	for i := range 500 {
		many = append(many, listedByAgent(t, fmt.Sprint(i)))
	}
	require.Equal(t, 500, importSessions(t, s, many...))
	require.Zero(t, importSessions(t, s, many...))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 500)
}

func adoptSession(
	t *testing.T, s store, n sessionstore.Session, d sessionstore.Draft,
) sessionstore.Lease {
	t.Helper()
	lease, err := s.Adopt(t.Context(), n, d)
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), lease, nil))
	return lease
}

func retained(t *testing.T, s store, agent sessionstore.Agent, l sessionstore.Listed) (removed int) {
	t.Helper()
	removed, err := s.Retain(t.Context(), agent, l)
	require.NoError(t, err)
	return removed
}

// retainOnly tells the store that the agent has only the sessions with these state keys.
func retainOnly(t *testing.T, s store, stateKeys ...string) int {
	t.Helper()
	l := sessionstore.Listed{Asked: time.Now().Add(time.Hour), StateKeys: map[string]bool{}}
	for _, stateKey := range stateKeys {
		l.StateKeys[stateKey] = true
	}
	return retained(t, s, explore(), l)
}

// opened activates an imported session and begins a turn in it.
func opened(t *testing.T, s store, id sessionstore.ID) sessionstore.Lease {
	t.Helper()
	lease := activate(t, s, id, sessionstore.Activation{})
	record(t, s, lease, "hello", say("there"))
	return lease
}

func retainMeanwhile(t *testing.T, s store) {
	importSessions(t, s, listedByAgent(t, "a"))
	meanwhile := sessionstore.Listed{Asked: get(t, s, "id of a").Listed}
	require.Zero(t, retained(t, s, explore(), meanwhile))
}
