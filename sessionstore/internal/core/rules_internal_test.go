package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const now = int64(1_800_000_000_000)

func listed(t *testing.T) sessionstore.Session {
	cwd, err := workspace.ParseDir("/src/app")
	require.NoError(t, err)
	return sessionstore.Session{ID: "id", StateKey: "a", Title: "title", Updated: toTime(now - 1000),
		Keys: sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}}
}

func TestImported(t *testing.T) {
	n := listed(t)
	k := row{imported: true, created: now - 1000, updated: now - 1000, title: "title", listed: now,
		cwd: "/src/app", realCwd: "/src/app"}
	same := k
	require.False(t, same.learn(n, false, nil, now+1), "an unchanged list changes nothing")
	require.Equal(t, k, same)
	future := row{imported: true, updated: now * 2}
	for name, c := range map[string]struct {
		row     row
		updated int64
		want    int64
	}{
		"later":               {k, now + 5, now + 5},
		"earlier":             {k, now - 5000, now - 1000},
		"in the future":       {k, now + maxAhead.Milliseconds() + 1, now - 1000},
		"of a clock ahead":    {k, now + maxAhead.Milliseconds(), now + maxAhead.Milliseconds()},
		"heals the future":    {future, now - 7, now - 7},
		"cannot heal by more": {future, now * 3, now * 2},
	} {
		n.Updated = toTime(c.updated)
		require.Equal(t, c.row.updated != c.want || c.row.listed == 0, c.row.learn(n, false, nil, now), name)
		require.Equal(t, c.want, c.row.updated, name)
	}
}

func TestActive(t *testing.T) {
	require.Equal(t, now, active(now-1, now))
	require.Equal(t, now+1, active(now+1, now), "clocks differ")
	require.Equal(t, now, active(now+maxAhead.Milliseconds()+1, now))
}

func TestRestores(t *testing.T) {
	older, newer := &row{updated: now - 1}, &row{updated: now}
	unused := &row{imported: true, updated: now + 1}
	for _, c := range []struct {
		same, holder *row
		want         bool
	}{
		{nil, nil, true}, {older, older, true}, {newer, nil, false}, {nil, newer, false},
		{nil, unused, true}, {unused, nil, false},
	} {
		require.Equal(t, c.want, restores(toTime(now), c.same, c.holder))
	}
}

func TestRanges(t *testing.T) {
	require.Equal(t, []listRange{{listing: Archived}}, ranges(sessionstore.Query{Archive: sessionstore.OnlyArchived}))
	cwd := listed(t).Keys.Roots.Cwd()
	got := ranges(sessionstore.Query{
		Archive: sessionstore.WithoutArchived, Cwd: &sessionstore.DirFilter{Spelling: cwd, Real: cwd},
		Additional: &sessionstore.DirsFilter{},
		Unused:     sessionstore.UnusedFilter{Before: toTime(now), Keep: []sessionstore.ID{"a", "\x00"}},
	})
	require.Len(t, got, 3*2*2)
	require.Equal(t, listRange{listing: Unused, keep: []sessionstore.ID{"a"}, where: []condition{
		{"real_cwd", "/src/app"}, {"real_dirs", "[]"},
	}}, got[len(got)-1])
}

func TestIndexed(t *testing.T) {
	require.EqualValues(t, 9, indexed(0, 9, 7, true, false))
	require.EqualValues(t, 6, indexed(0, 9, 7, true, true))
	require.EqualValues(t, 6, indexed(0, 9, 7, false, true))
	require.EqualValues(t, 9, indexed(6, 9, 7, false, true), "a passage too long is cut")
	require.EqualValues(t, 9, indexed(6, 9, 0, false, true))
}
