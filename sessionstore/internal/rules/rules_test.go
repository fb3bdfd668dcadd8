package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const now = int64(1_800_000_000_000)

func listed(t *testing.T) sessionstore.Imported {
	cwd, err := workspace.ParseDir("/src/app")
	require.NoError(t, err)
	return sessionstore.Imported{ID: "id", StateKey: "a", Title: "title", Updated: Time(now - 1000),
		Keys: sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}}
}

func TestImported(t *testing.T) {
	n := listed(t)
	onlyKnown := n
	onlyKnown.OnlyKnown = true
	require.Zero(t, Known{}.imported(onlyKnown, nil, now))
	k := Known{}.imported(n, nil, now)
	require.Equal(t, Known{Stored: true, Created: now - 1000, Updated: now - 1000, Title: "title",
		Listed: now, Cwd: "/src/app", RealCwd: "/src/app"}, k)
	require.Equal(t, k, k.imported(n, nil, now+1), "an unchanged list changes nothing")
	for name, c := range map[string]struct {
		known   Known
		updated int64
		want    int64
	}{
		"later":               {k, now + 5, now + 5},
		"earlier":             {k, now - 5000, now - 1000},
		"in the future":       {k, now + MaxAhead() + 1, now - 1000},
		"of a clock ahead":    {k, now + MaxAhead(), now + MaxAhead()},
		"heals the future":    {Known{Stored: true, Updated: now * 2}, now - 7, now - 7},
		"cannot heal by more": {Known{Stored: true, Updated: now * 2}, now * 3, now * 2},
	} {
		n.Updated = Time(c.updated)
		require.Equal(t, c.want, c.known.imported(n, nil, now).Updated, name)
	}
}

func TestImportedTombstone(t *testing.T) {
	k := Known{Deleted: now}
	day := (24 * time.Hour).Milliseconds()
	require.Equal(t, k, k.imported(listed(t), nil, now+day))
	require.Equal(t, Known{Deleted: now + day + 1}, k.imported(listed(t), nil, now+day+1))
}

func TestActive(t *testing.T) {
	require.Equal(t, now, Active(now-1, now))
	require.Equal(t, now+1, Active(now+1, now), "clocks differ")
	require.Equal(t, now, Active(now+MaxAhead()+1, now))
}

func TestRename(t *testing.T) {
	title, renamed := Rename("a\x00b")
	require.True(t, renamed)
	require.Equal(t, "a\uFFFDb", title)
	_, renamed = Rename("")
	require.False(t, renamed)
}

func TestRestores(t *testing.T) {
	older, newer := &Standing{Updated: now - 1}, &Standing{Updated: now}
	unused := &Standing{Imported: true, Updated: now + 1}
	for _, c := range []struct {
		same, holder *Standing
		want         bool
	}{
		{nil, nil, true}, {older, older, true}, {newer, nil, false}, {nil, newer, false},
		{nil, unused, true}, {unused, nil, false},
	} {
		require.Equal(t, c.want, Restores(Time(now), c.same, c.holder))
	}
}

func TestBury(t *testing.T) {
	deleted := []sessionstore.Deleted{{Name: Tombstone("kept")}, {Name: Tombstone("untouched")}, {Name: Tombstone("unknown")}}
	remove, tombstones := Bury(deleted, []Holder{
		{Name: Tombstone("another"), Standing: Standing{Imported: true}},
		{Name: Tombstone("kept"), Standing: Standing{Imported: true, Labelled: true}},
		{Name: Tombstone("untouched"), Standing: Standing{Imported: true}},
	})
	require.Equal(t, []int{2}, remove)
	require.Equal(t, deleted[1:], tombstones)
}

func TestChangeKey(t *testing.T) {
	require.Zero(t, ChangeKey("", "a"))
	require.Zero(t, ChangeKey("a", "a"))
	require.Zero(t, ChangeKey("a", ""))
	require.Equal(t, KeyChange{Remember: "a", Reset: true}, ChangeKey("a", "b"))
}

func TestRanges(t *testing.T) {
	require.Equal(t, []Range{{Listing: Archived}}, Ranges(sessionstore.Query{Archive: sessionstore.OnlyArchived}))
	cwd := listed(t).Keys.Roots.Cwd()
	got := Ranges(sessionstore.Query{
		Archive: sessionstore.WithoutArchived, Cwd: &sessionstore.DirFilter{Spelling: cwd, Real: cwd},
		Additional: &sessionstore.DirsFilter{},
		Unused:     sessionstore.UnusedFilter{Before: Time(now), Keep: []sessionstore.ID{"a", "\x00"}},
	})
	require.Len(t, got, 3*2*2)
	require.Equal(t, Range{Listing: Unused, Keep: []sessionstore.ID{"a"}, Where: []Condition{
		{"real_cwd", "/src/app"}, {"real_dirs", []string{}},
	}}, got[len(got)-1])
}

func TestIndexed(t *testing.T) {
	require.EqualValues(t, 9, Indexed(0, 9, 7, true, false))
	require.EqualValues(t, 6, Indexed(0, 9, 7, true, true))
	require.EqualValues(t, 6, Indexed(0, 9, 7, false, true))
	require.EqualValues(t, 9, Indexed(6, 9, 7, false, true), "a passage too long is cut")
	require.EqualValues(t, 9, Indexed(6, 9, 0, false, true))
}
