package storetest

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func listTests() []testCase {
	return []testCase{
		{"A18/pages are complete while sessions are added and deleted", pagesWhileAdding},
		{"A18/a cursor is valid for its filters only", cursorBinding},
		{"A18/a malformed cursor is rejected", malformedCursor},
		{"A18/the size of a page", pageSize},
		{"A31/a list has the sessions of many agents", manyAgents},
	}
}

func list(t require.TestingT, s store, q sessionstore.Query) sessionstore.Page {
	page, err := s.List(contextOf(t), q)
	require.NoError(t, err)
	require.NotNil(t, page.Sessions)
	return page
}

// listAll follows the cursors to the end.
func listAll(t require.TestingT, s store, q sessionstore.Query) []sessionstore.Session {
	all := []sessionstore.Session{}
	for {
		page := list(t, s, q)
		require.LessOrEqual(t, len(page.Sessions), q.Size())
		all = append(all, page.Sessions...)
		if page.Next == "" {
			return all
		}
		require.Len(t, page.Sessions, q.Size(), "only the last page is short")
		q.Cursor = page.Next
	}
}

func ids(sessions []sessionstore.Session) []string {
	out := []string{}
	for _, s := range sessions {
		out = append(out, string(s.ID))
	}
	return out
}

func pagesWhileAdding(t *testing.T, s store) {
	for i := range 30 {
		Create(t, s, fmt.Sprintf("%02d", i))
	}
	q := sessionstore.Query{Limit: 4}
	seen := map[string]int{}
	for round := 0; ; round++ {
		page := list(t, s, q)
		for _, session := range page.Sessions {
			seen[string(session.ID)]++
			require.NoError(t, s.Delete(t.Context(), session.ID), "the list does not depend on what was listed")
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
		Create(t, s, fmt.Sprintf("new %d", round))
	}
	for i := range 30 {
		require.Equal(t, 1, seen[fmt.Sprintf("%02d", i)], i)
	}
}

func cursorBinding(t *testing.T, s store) {
	for i := range 5 {
		Create(t, s, fmt.Sprint(i))
	}
	cwd := sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "app")}
	none := sessionstore.DirsFilter{}
	some := sessionstore.DirsFilter{Spelling: dirs(t, "lib"), Real: linked(t, "lib", nil, []string{"lib"}).Real}
	queries := []sessionstore.Query{
		{}, {Agent: explore()}, {Cwd: &cwd}, {Additional: &none}, {Cwd: &cwd, Additional: &none}, {Agent: explore(), Cwd: &cwd},
		{Cwd: &sessionstore.DirFilter{Spelling: dir(t, "lib"), Real: dir(t, "app")}}, {Additional: &some},
		{Archive: sessionstore.WithoutArchived},
	}
	for i, from := range queries {
		from.Limit = 2
		page := list(t, s, from)
		if page.Next == "" {
			continue
		}
		for j, to := range queries {
			to.Cursor, to.Limit = page.Next, 3
			rest, err := s.List(t.Context(), to)
			if i == j {
				require.NoError(t, err)
				require.Len(t, rest.Sessions, 3, "the limit may change")
				continue
			}
			var refused *sessionstore.CursorError
			require.ErrorAs(t, err, &refused, "%d %d", i, j)
			require.Equal(t, page.Next, refused.Cursor)
		}
	}
	from := queries[2]
	from.Limit = 2
	cursor := list(t, s, from).Next
	moved := sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "moved")}
	require.Len(t, list(t, s, sessionstore.Query{Cwd: &moved, Cursor: cursor}).Sessions, 3, "the real path is not part of the cursor")
}

func malformedCursor(t *testing.T, s store) {
	for i := range 3 {
		Create(t, s, fmt.Sprint(i))
	}
	good := list(t, s, sessionstore.Query{Limit: 1}).Next
	raw, err := base64.RawURLEncoding.DecodeString(string(good))
	require.NoError(t, err)
	raw[0]++
	for _, cursor := range []sessionstore.Cursor{
		"x", "=", "\x00", "AAAA", good[:8], good + "=", good + " ", "null", "' OR 1=1",
		sessionstore.Cursor(base64.RawURLEncoding.EncodeToString(raw)),
	} {
		_, err := s.List(t.Context(), sessionstore.Query{Cursor: cursor})
		require.ErrorAs(t, err, new(*sessionstore.CursorError), "%q", cursor)
	}
}

func pageSize(t *testing.T, s store) {
	for i := range sessionstore.PageSize + 1 {
		Create(t, s, fmt.Sprintf("%03d", i))
	}
	for limit, want := range map[int]int{0: sessionstore.PageSize, -1: sessionstore.PageSize, 7: 7, 1 << 40: sessionstore.PageSize + 1} {
		require.Len(t, list(t, s, sessionstore.Query{Limit: limit}).Sessions, want, limit)
	}
	exact := list(t, s, sessionstore.Query{Limit: sessionstore.PageSize + 1})
	require.Empty(t, exact.Next, "a full last page is the end")
}

func manyAgents(t *testing.T, s store) {
	const count = 50
	for i := range count {
		createAs(t, s, sessionstore.Session{
			ID: sessionstore.ID(fmt.Sprintf("%03d", i)), Agent: sessionstore.Agent{Kind: "proxy", Profile: fmt.Sprint(i)},
		})
	}
	q := sessionstore.Query{Cwd: &sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "app")},
		Additional: &sessionstore.DirsFilter{}, Archive: sessionstore.ArchivedToo}
	require.Len(t, listAll(t, s, q), count)
}

func labelTests() []testCase {
	return []testCase{
		{"A35/an unused session is left out only if it is old enough", leaveOutOld},
		{"A35/a session that its agent lists with later activity is not unused", usedElsewhere},
	}
}

func leaveOutOld(t *testing.T, s store) {
	some(t, s)
	q := sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: get(t, s, "unused").Updated}}
	require.Len(t, listAll(t, s, q), 3)
	q.Unused.Before = latest(t, s)
	require.ElementsMatch(t, []string{"used", "imported"}, ids(listAll(t, s, q)))
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
