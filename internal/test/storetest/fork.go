package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func forkTests() []testCase {
	return []testCase{
		{"A14/a fork may take the key of its source", forkTakesKey},
		{"A14/a fork is new, and may have a title and a state of its own", forkOwn},
		{"A31/a fork for another agent has neither the state nor the states of its source", forkForAnotherAgent},
		{"A40/a fork has the history before a turn", forkBefore},
	}
}

func forkOwn(t *testing.T, s store) {
	createAs(t, s, sessionstore.Session{ID: "one", Title: "title", State: []byte("state")})
	before := get(t, s, "one")
	fork(t, s, "one", sessionstore.Session{ID: "two", Title: "own", State: []byte("own too")})
	got := get(t, s, "two")
	require.Equal(t, "own", got.Title)
	require.Equal(t, []byte("own too"), got.State)
	require.Equal(t, got.Created, got.Updated)
	require.Equal(t, before, get(t, s, "one"))
}

func forkForAnotherAgent(t *testing.T, s store) {
	lease := createAs(t, s, sessionstore.Session{
		ID: "one", Keys: Keys(t, "app", "lib"), Title: "title", State: []byte("state"), StateKey: "key",
	})
	record(t, s, lease, "ask", say("answer"), mode("plan"))
	before := get(t, s, "one")
	other := sessionstore.Agent{Kind: "proxy", Profile: "child"}
	fork(t, s, "one", sessionstore.Session{ID: "two", Agent: other, Keys: before.Keys})
	got := get(t, s, "two")
	require.Equal(t, other, got.Agent)
	requireKeys(t, before.Keys, got.Keys)
	require.Equal(t, "title", got.Title)
	require.EqualValues(t, 1, got.Turns)
	require.Nil(t, got.State)
	require.Empty(t, got.StateKey)
	require.Empty(t, states(t, s, "two"))
	require.Equal(t, history(t, s, "one"), history(t, s, "two"))
	require.Equal(t, []string{"two"}, ids(listAll(t, s, sessionstore.Query{Agent: other})))
	require.Equal(t, before, get(t, s, "one"))
	require.Equal(t, texts(mode("plan")), states(t, s, "one"))
}

func forkBefore(t *testing.T, s store) {
	lease := Create(t, s, "one")
	require.NoError(t, s.Append(t.Context(), lease, []update{say("welcome")}))
	ask := func(words string) update { return text("user_message_chunk", words) }
	record(t, s, lease, "1", say("answer 1"))
	number := Begin(t, s, lease, sessionstore.Turn{Prompt: []update{ask("2"), ask("and a file")}})
	require.NoError(t, s.EndTurn(t.Context(), lease, number, say("answer 2"), mode("plan"), say("between")))
	// A turn of a history that was imported begins within a segment.
	imported := newDraft(t, s, "one", ask("3"), say("answer 3"), ask("4"), say("answer 4"))
	lease = activate(t, s, "one", sessionstore.Activation{History: imported})
	Begin(t, s, lease, sessionstore.Turn{Prompt: []update{ask("5")}})
	require.NoError(t, s.Append(t.Context(), lease, []update{say("half")}))
	before, all := get(t, s, "one"), history(t, s, "one")
	n := sessionstore.Session{ID: "two", Agent: explore(), Keys: Keys(t, "other", "lib"), Title: "title",
		State: []byte("state")}
	for turn, updates := range map[int64]int{1: 1, 2: 3, 3: 7, 4: 9} {
		require.NoError(t, sessionstore.ForkBefore(t.Context(), s, "one", turn, n))
		got := get(t, s, "two")
		require.Equal(t, all[:updates], history(t, s, "two"), turn)
		require.Equal(t, turn-1, got.Turns)
		requireKeys(t, n.Keys, got.Keys)
		require.Equal(t, []string{"title", "state"}, []string{got.Title, string(got.State)})
		require.WithinDuration(t, time.Now(), got.Updated, time.Minute)
		require.Empty(t, states(t, s, "two"))
		require.NoError(t, s.Delete(t.Context(), "two"))
	}
	for _, turn := range []int64{-1, 0, 5, 6} {
		require.ErrorContains(t, sessionstore.ForkBefore(t.Context(), s, "one", turn, n),
			fmt.Sprintf("there is no turn %d: the session has 4 that ended", turn))
	}
	require.ErrorAs(t, sessionstore.ForkBefore(t.Context(), s, "none", 1, n), new(*sessionstore.NotFoundError))
	require.Equal(t, []string{"one"}, ids(listAll(t, s, sessionstore.Query{})))
	require.Equal(t, before, get(t, s, "one"))
}

func forkTakesKey(t *testing.T, s store) {
	a := listedByAgent(t, "a")
	require.Equal(t, 1, importSessions(t, s, a))
	activate(t, s, "id of a", sessionstore.Activation{State: []byte("kept"), StateKey: a.StateKey})
	fork(t, s, "id of a", sessionstore.Session{ID: "fork", Agent: a.Agent, StateKey: a.StateKey})
	require.Equal(t, "kept", string(get(t, s, "fork").State))
}
