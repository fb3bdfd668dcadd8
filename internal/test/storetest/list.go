package storetest

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func listTests() []testCase {
	return []testCase{
		{"A18/without a match the page is empty", emptyPage},
		{"A18/newest activity first, ties by id", newestFirst},
		{"A18/pages are complete while sessions are added and deleted", pagesWhileAdding},
		{"A18/a cursor is valid for its filters only", cursorBinding},
		{"A18/a malformed cursor is rejected", malformedCursor},
		{"A18/the size of a page", pageSize},
		{"A31/sessions belong to their agent", agents},
		{"A31/a list has the sessions of many agents", manyAgents},
		{"A16/an empty list of additional roots matches sessions without any", noAdditional},
		{"A17/filters match by spelling or real path", eitherKey},
		{"A13/a list has the latest roots", latestRoots},
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

func emptyPage(t *testing.T, s store) {
	cwd := sessionstore.DirFilter{Spelling: dir(t, "none"), Real: dir(t, "none")}
	for _, q := range []sessionstore.Query{{}, {Cwd: &cwd}, {Agent: explore(), Cwd: &cwd, Additional: &sessionstore.DirsFilter{}}} {
		page := list(t, s, q)
		require.Empty(t, page.Sessions)
		require.Empty(t, page.Next)
	}
}

func newestFirst(t *testing.T, s store) {
	for i := range 20 {
		create(t, s, fmt.Sprintf("%02d", (i*7)%20))
	}
	all := listAll(t, s, sessionstore.Query{Limit: 3})
	require.Len(t, all, 20)
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		require.True(t, a.Updated.After(b.Updated) || a.Updated.Equal(b.Updated) && a.ID > b.ID, "%s before %s", a.ID, b.ID)
	}
}

func pagesWhileAdding(t *testing.T, s store) {
	for i := range 30 {
		create(t, s, fmt.Sprintf("%02d", i))
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
		create(t, s, fmt.Sprintf("new %d", round))
	}
	for i := range 30 {
		require.Equal(t, 1, seen[fmt.Sprintf("%02d", i)], i)
	}
}

func cursorBinding(t *testing.T, s store) {
	for i := range 5 {
		create(t, s, fmt.Sprint(i))
	}
	cwd := sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "app")}
	none := sessionstore.DirsFilter{}
	some := sessionstore.DirsFilter{Spelling: dirs(t, "lib"), Real: linked(t, "lib", nil, []string{"lib"}).Real}
	queries := []sessionstore.Query{
		{}, {Agent: explore()}, {Cwd: &cwd}, {Additional: &none}, {Cwd: &cwd, Additional: &none}, {Agent: explore(), Cwd: &cwd},
		{Cwd: &sessionstore.DirFilter{Spelling: dir(t, "lib"), Real: dir(t, "app")}}, {Additional: &some},
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
		create(t, s, fmt.Sprint(i))
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
		create(t, s, fmt.Sprintf("%03d", i))
	}
	for limit, want := range map[int]int{0: sessionstore.PageSize, -1: sessionstore.PageSize, 7: 7, 1 << 40: sessionstore.PageSize + 1} {
		require.Len(t, list(t, s, sessionstore.Query{Limit: limit}).Sessions, want, limit)
	}
	exact := list(t, s, sessionstore.Query{Limit: sessionstore.PageSize + 1})
	require.Empty(t, exact.Next, "a full last page is the end")
}

func agents(t *testing.T, s store) {
	of := []sessionstore.Agent{{Kind: "explore"}, {Kind: "proxy", Profile: "a"}, {Kind: "proxy", Profile: "b"}, {Kind: "proxy"}}
	for i, a := range of {
		for j := range 3 {
			_, err := s.Create(t.Context(), sessionstore.Session{
				ID: sessionstore.ID(fmt.Sprintf("%d.%d", i, j)), Agent: a, Keys: keys(t, "app"),
			})
			require.NoError(t, err)
		}
	}
	for i, a := range of {
		for _, session := range listAll(t, s, sessionstore.Query{Agent: a, Limit: 2}) {
			require.Equal(t, a, session.Agent)
			require.Equal(t, fmt.Sprint(i), string(session.ID[:1]))
		}
	}
	require.Len(t, listAll(t, s, sessionstore.Query{Limit: 2}), 12, "no agent matches every agent")
	require.Empty(t, listAll(t, s, sessionstore.Query{Agent: sessionstore.Agent{Kind: "none"}}))
}

func manyAgents(t *testing.T, s store) {
	const count = 50
	for i := range count {
		_, err := s.Create(t.Context(), sessionstore.Session{ID: sessionstore.ID(fmt.Sprintf("%03d", i)),
			Agent: sessionstore.Agent{Kind: "proxy", Profile: fmt.Sprint(i)}, Keys: keys(t, "app")})
		require.NoError(t, err)
	}
	q := sessionstore.Query{Cwd: &sessionstore.DirFilter{Spelling: dir(t, "app"), Real: dir(t, "app")},
		Additional: &sessionstore.DirsFilter{}, Archive: sessionstore.ArchivedToo}
	require.Len(t, listAll(t, s, q), count)
}

func noAdditional(t *testing.T, s store) {
	create(t, s, "none")
	_, err := s.Create(t.Context(), sessionstore.Session{ID: "some", Agent: explore(), Keys: keys(t, "app", "lib")})
	require.NoError(t, err)
	require.Equal(t, []string{"none"}, ids(listAll(t, s, sessionstore.Query{Additional: &sessionstore.DirsFilter{}})))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 2)
}

func eitherKey(t *testing.T, s store) {
	_, err := s.Create(t.Context(), sessionstore.Session{
		ID: "one", Agent: explore(), Keys: linked(t, "link", []string{"a", "b"}, []string{"app", "real/a", "real/b"}),
	})
	require.NoError(t, err)
	filter := func(spelling, real []string) *sessionstore.DirsFilter {
		return &sessionstore.DirsFilter{Spelling: dirs(t, spelling...), Real: linked(t, "x", nil, real).Real}
	}
	cwd := func(spelling, real string) *sessionstore.DirFilter {
		return &sessionstore.DirFilter{Spelling: dir(t, spelling), Real: dir(t, real)}
	}
	for _, c := range []struct {
		name  string
		query sessionstore.Query
		found bool
	}{
		{"cwd by spelling", sessionstore.Query{Cwd: cwd("link", "moved")}, true},
		{"cwd by real path", sessionstore.Query{Cwd: cwd("app", "app")}, true},
		{"cwd through another link", sessionstore.Query{Cwd: cwd("other", "app")}, true},
		{"cwd whose real path is the spelling", sessionstore.Query{Cwd: cwd("x", "link")}, false},
		{"dirs by spelling", sessionstore.Query{Additional: filter([]string{"a", "b"}, []string{"x", "y"})}, true},
		{"dirs by real path", sessionstore.Query{Additional: filter([]string{"x", "y"}, []string{"real/a", "real/b"})}, true},
		{"dirs half by each", sessionstore.Query{Additional: filter([]string{"a", "y"}, []string{"x", "real/b"})}, false},
		{"dirs in another order", sessionstore.Query{Additional: filter([]string{"b", "a"}, []string{"real/b", "real/a"})}, false},
		{"dirs in part", sessionstore.Query{Additional: filter([]string{"a"}, []string{"real/a"})}, false},
		{"both, each by another key", sessionstore.Query{
			Cwd: cwd("link", "x"), Additional: filter([]string{"x", "y"}, []string{"real/a", "real/b"}),
		}, true},
		{"both, one of them wrong", sessionstore.Query{Cwd: cwd("x", "x"), Additional: filter([]string{"a", "b"}, []string{"real/a", "real/b"})}, false},
	} {
		want := []string{}
		if c.found {
			want = []string{"one"}
		}
		require.Equal(t, want, ids(listAll(t, s, c.query)), c.name)
	}
}

func latestRoots(t *testing.T, s store) {
	create(t, s, "one")
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app", "lib")})
	require.NoError(t, err)
	require.Empty(t, listAll(t, s, sessionstore.Query{Additional: &sessionstore.DirsFilter{}}))
	lib := sessionstore.DirsFilter{Spelling: dirs(t, "lib"), Real: linked(t, "lib", nil, []string{"lib"}).Real}
	found := listAll(t, s, sessionstore.Query{Additional: &lib})
	require.Equal(t, []string{"one"}, ids(found))
	requireKeys(t, keys(t, "app", "lib"), found[0].Keys)
}
