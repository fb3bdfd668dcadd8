package sessions

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// newStore returns an empty store.
func newStore(t *testing.T) *sqlite.Store {
	store := sqlite.NewMemory()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// keys returns the keys of a session with these folders.
func keys(t *testing.T, paths ...string) (k sessionstore.Keys) {
	t.Helper()
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	require.NoError(t, err)
	k.Roots = roots
	for _, dir := range roots.All() {
		k.Real = append(k.Real, workspace.Real(dir))
	}
	return k
}

// create creates a session with these folders, and returns it.
func create(t *testing.T, store sessionstore.Store, paths ...string) sessionstore.Session {
	t.Helper()
	id := sessionstore.NewID()
	lease, err := store.Create(t.Context(), sessionstore.Session{
		ID: id, Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, paths...), Title: "title of " + string(id),
	})
	require.NoError(t, err)
	_, err = store.BeginTurn(t.Context(), lease, sessionstore.Turn{})
	require.NoError(t, err)
	one, err := store.Get(t.Context(), id)
	require.NoError(t, err)
	return one
}

// smallPages is a store whose pages have two sessions.
type smallPages struct{ sessionstore.Sessions }

func (s smallPages) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	q.Limit = 2
	return s.Sessions.List(ctx, q)
}

func TestAllSessionsOfManyPages(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	want := map[sessionstore.ID]bool{}
	for range 7 {
		want[create(t, store, dir).ID] = true
	}
	got := map[sessionstore.ID]bool{}
	for one, err := range All(t.Context(), smallPages{store}, sessionstore.Query{}) {
		require.NoError(t, err)
		got[one.ID] = true
	}
	require.Equal(t, want, got)
}

func TestSessionsOfAllOwnersAreCopiedOnce(t *testing.T) {
	from, to, dir := newStore(t), newStore(t), t.TempDir()
	for _, owner := range []string{"ana", "ana", "bob"} {
		create(t, from.For(owner), dir)
	}
	var seen []Counts
	counts, err := Copy(t.Context(), from, to, func(c Counts) { seen = append(seen, c) })
	require.NoError(t, err)
	require.Equal(t, Counts{Total: 3, Copied: 3}, counts)
	require.Equal(t, []Counts{{Total: 3}, {Total: 3, Copied: 1}, {Total: 3, Copied: 2}}, seen)
	require.Equal(t, "3 sessions", counts.String())
	for owner, want := range map[string]int{"ana": 2, "bob": 1} {
		n := 0
		for one, err := range All(t.Context(), to.For(owner), sessionstore.Query{}) {
			require.NoError(t, err)
			require.Equal(t, "title of "+string(one.ID), one.Title)
			n++
		}
		require.Equal(t, want, n, owner)
	}
	counts, err = Copy(t.Context(), from, to, func(Counts) {})
	require.NoError(t, err)
	require.Equal(t, "0 sessions; 3 were there already, used at least as recently", counts.String())
}

// A turn that was recorded in either store is never replaced, and the other sessions are copied.
//
// Clause S12.
func TestSessionsContinuedInBothStores(t *testing.T) {
	from, to, dir := newStore(t), newStore(t), t.TempDir()
	one, other := create(t, from, dir), create(t, from, dir)
	prompt := func(store sessionstore.Store, text string) {
		lease, err := store.Activate(t.Context(), one.ID, sessionstore.Activation{Keys: one.Keys})
		require.NoError(t, err)
		chunk := sessionstore.Update{Kind: sessionstore.UserMessageChunk,
			Raw: []byte(`{"update":{"sessionUpdate":"user_message_chunk","content":` +
				`{"type":"text","text":"` + text + `"}}}`)}
		number, err := store.BeginTurn(t.Context(), lease,
			sessionstore.Turn{Prompt: []sessionstore.Update{chunk}})
		require.NoError(t, err)
		require.NoError(t, store.EndTurn(t.Context(), lease, number))
		time.Sleep(2 * time.Millisecond) // the next use is later
	}
	sizeOf := func(store sessionstore.Store) (n int) {
		for _, err := range store.History(t.Context(), one.ID) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	copyAll := func() (Counts, error) { return Copy(t.Context(), from, to, func(Counts) {}) }
	prompt(from, "one")
	_, err := copyAll()
	require.NoError(t, err)
	prompt(from, "two")
	_, err = copyAll()
	require.NoError(t, err, "what goes on in the same place replaces the copy")
	require.Equal(t, 2, sizeOf(to))

	for _, there := range []string{"two in the copy", "three in the copy"} {
		prompt(to, there)
	}
	prompt(from, "three")
	require.NoError(t, to.Delete(t.Context(), other.ID))
	counts, err := copyAll()
	require.ErrorContains(t, err, "session "+string(one.ID)+" was continued in both stores")
	require.Equal(t, Counts{Total: 2, Copied: 1}, counts)
	require.Equal(t, 3, sizeOf(from))
	require.Equal(t, 4, sizeOf(to))
}

// A session that is deleted while others are copied is no error.
func TestSessionThatIsDeletedMeanwhile(t *testing.T) {
	from, to, dir := newStore(t), newStore(t), t.TempDir()
	one, other := create(t, from, dir), create(t, from, dir)
	begun := false
	counts, err := Copy(t.Context(), from, to, func(Counts) {
		if !begun {
			begun = true
			require.NoError(t, from.Delete(t.Context(), one.ID))
		}
	})
	require.NoError(t, err)
	require.Equal(t, Counts{Total: 1, Copied: 1}, counts)
	_, err = to.Get(t.Context(), other.ID)
	require.NoError(t, err)
}

// moved returns the move of a folder that has just been renamed.
func moved(t *testing.T, from, to string) Move {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
	dirs, err := workspace.ParseDirs([]string{from, to})
	require.NoError(t, err)
	m, err := NewMove(dirs.At(0), dirs.At(1))
	require.NoError(t, err)
	require.Equal(t, dirs.At(0), m.From())
	return m
}

// base returns a directory without links, with some directories in it.
func base(t *testing.T, dirs ...string) string {
	t.Helper()
	base := dirtest.New(t)
	for _, dir := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	return base
}

func TestRootsFollowAMovedFolder(t *testing.T) {
	base := base(t, "old/sub", "older", "other")
	old, renamed := filepath.Join(base, "old"), filepath.Join(base, "new")
	inside := keys(t, filepath.Join(old, "sub"), old, filepath.Join(base, "other"))
	outside := keys(t, filepath.Join(base, "older"))
	m := moved(t, old, renamed)

	got, changed, err := m.Keys(inside)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, keys(t, filepath.Join(renamed, "sub"), renamed, filepath.Join(base, "other")), got)
	got, changed, err = m.Keys(outside)
	require.NoError(t, err)
	require.False(t, changed, "a name that only begins like the folder's")
	require.Equal(t, outside, got)
}

// Roots contain no path twice, even if the session already had the new folder.
func TestRootsThatMeet(t *testing.T) {
	base := base(t, "old")
	old, renamed := filepath.Join(base, "old"), filepath.Join(base, "new")
	both := keys(t, old, renamed)
	m := moved(t, old, renamed)
	got, changed, err := m.Keys(both)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, keys(t, renamed), got)
}

// A root that was spelled through a link inside the moved folder gets its real path.
func TestRootThroughALinkThatMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	base := base(t, "old/sub")
	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(filepath.Join(base, "old"), link))
	through := keys(t, filepath.Join(link, "sub"))
	m := moved(t, filepath.Join(base, "old"), filepath.Join(base, "new"))
	got, changed, err := m.Keys(through)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, keys(t, filepath.Join(base, "new", "sub")), got)
}

// A session that was opened since it was listed keeps the folders that it was opened with.
func TestSessionThatWasOpenedMeanwhile(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	one, to := create(t, store, dir), keys(t, t.TempDir())
	require.NoError(t, SetKeys(t.Context(), store, one, to))
	require.ErrorContains(t, SetKeys(t.Context(), store, one, to), "was opened in the meantime: run the command again")
	now, err := store.Get(t.Context(), one.ID)
	require.NoError(t, err)
	require.Equal(t, to, now.Keys)
}
