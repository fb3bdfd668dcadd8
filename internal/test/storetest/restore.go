package storetest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func restoreTests() []testCase {
	return []testCase{
		{"a session is restored as it was", restoreWhole},
		{"an older session is replaced, no newer one", restoreNewer},
		{"a session is restored in the place of one that was imported", restoreImported},
		{"a session that cannot be stored", restoreInvalid},
		{"deleted sessions of another store stay deleted", restoreDeleted},
	}
}

// foreign returns a session as another store has it.
func foreign(t *testing.T, id string) sessionstore.Session {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	return sessionstore.Session{
		ID: sessionstore.ID(id), Agent: explore(), Keys: linked(t, "link", []string{"lib"}, []string{"app", "lib"}),
		Title: "title", Created: at, Updated: at.Add(time.Hour), State: []byte("state"), StateKey: "key of " + id,
		Turns: 3, Archived: true, Renamed: true, Listed: at.Add(time.Minute), Gone: true, Meta: []byte(`{"a":1}`),
	}
}

func restore(t *testing.T, s store, n sessionstore.Session, updates ...update) bool {
	t.Helper()
	var history sessionstore.Draft
	if len(updates) > 0 {
		history = newDraft(t, s, "", updates...)
	}
	stored, err := s.Restore(t.Context(), n, history, nil)
	require.NoError(t, err)
	return stored
}

// requireRestored compares a session with the one that was restored.
func requireRestored(t *testing.T, want sessionstore.Session, s store) {
	t.Helper()
	got := get(t, s, string(want.ID))
	requireKeys(t, want.Keys, got.Keys)
	want.Generation, want.Keys = got.Generation, got.Keys
	require.Equal(t, want, got)
}

func restoreWhole(t *testing.T, s store) {
	whole := foreign(t, "whole")
	plain := sessionstore.Session{ID: "plain", Agent: explore(), Keys: Keys(t, "app"), Created: whole.Created, Updated: whole.Updated}
	listed := foreign(t, "listed")
	listed.Gone, listed.Archived, listed.Turns = false, false, 0
	require.True(t, restore(t, s, whole, say("a"), mode("m"), say("b")))
	require.True(t, restore(t, s, plain))
	require.True(t, restore(t, s, listed))
	older := listed
	older.Updated = older.Created
	require.False(t, restore(t, s, older), "although nobody has used it")
	for _, n := range []sessionstore.Session{whole, plain, listed} {
		requireRestored(t, n, s)
	}
	require.Equal(t, texts(say("a"), say("b")), history(t, s, "whole"))
	require.Equal(t, texts(mode("m")), states(t, s, "whole"))
	id, err := s.Named(t.Context(), explore(), "key of whole")
	require.NoError(t, err)
	require.Equal(t, whole.ID, id)

	// It is a session like any other.
	require.NoError(t, s.Unarchive(t.Context(), "whole"))
	lease := activate(t, s, "whole", sessionstore.Activation{Keys: whole.Keys})
	record(t, s, lease, "hello", say("c"))
	require.Equal(t, whole.Turns+1, get(t, s, "whole").Turns)
	require.Len(t, history(t, s, "whole"), 4)
	require.Equal(t, []string{"whole", "listed"}, ids(listAll(t, s, sessionstore.Query{
		Unused: sessionstore.UnusedFilter{Before: latest(t, s)}, Archive: sessionstore.WithoutArchived,
		Cwd: &sessionstore.DirFilter{Spelling: dir(t, "link"), Real: dir(t, "app")}})), "an agent listed it")
}

func restoreNewer(t *testing.T, s store) {
	n := foreign(t, "one")
	require.True(t, restore(t, s, n, say("first")))
	require.False(t, restore(t, s, n, say("again")))
	n.Updated = n.Updated.Add(-time.Millisecond)
	require.False(t, restore(t, s, n, say("older")))
	require.Equal(t, texts(say("first")), history(t, s, "one"))
	lease := activate(t, s, "one", sessionstore.Activation{Keys: n.Keys})
	n.Updated, n.StateKey, n.Title = n.Updated.Add(time.Second), "another key", "newer"
	n.Agent = sessionstore.Agent{Kind: "other"}
	require.True(t, restore(t, s, n, say("newer")))
	requireRestored(t, n, s)
	require.Equal(t, texts(say("newer")), history(t, s, "one"))
	require.Error(t, s.Append(t.Context(), lease, []update{say("lost")}))
	_, err := s.Named(t.Context(), explore(), "key of one")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func restoreImported(t *testing.T, s store) {
	n := foreign(t, "one")
	imported := listedByAgent(t, n.StateKey)
	imported.Updated = time.Time{} // now
	require.Equal(t, 1, importSessions(t, s, imported))
	require.True(t, restore(t, s, n, say("a")), "nobody has used the imported one")
	requireRestored(t, n, s)
	_, err := s.Get(t.Context(), imported.ID)
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))

	other := foreign(t, "other")
	other.StateKey = n.StateKey
	require.False(t, restore(t, s, other, say("b")), "the one with its name was used as late")
	other.Updated = other.Updated.Add(time.Second)
	require.True(t, restore(t, s, other, say("b")))
	require.Empty(t, get(t, s, "one").StateKey)
	require.Equal(t, texts(say("a")), history(t, s, "one"))
}

func restoreInvalid(t *testing.T, s store) {
	n := foreign(t, "a\x00")
	_, err := s.Restore(t.Context(), n, nil, nil)
	require.ErrorContains(t, err, "must be UTF-8 without NUL")
	Create(t, s, "one")
	_, err = s.Restore(t.Context(), foreign(t, "two"), newDraft(t, s, "one", say("a")), nil)
	require.ErrorIs(t, err, sessionstore.ErrDraft)
}

func restoreDeleted(t *testing.T, s store) {
	imported := func(name string) sessionstore.Session { return listedByAgent(t, name) }
	require.Equal(t, 4, importSessions(t, s,
		imported("here"), imported("used"), imported("unused"), imported("renamed")))
	require.NoError(t, s.Delete(t.Context(), imported("here").ID))
	opened(t, s, imported("used").ID)
	require.NoError(t, s.Rename(t.Context(), imported("renamed").ID, "chosen"))

	named := func(names ...string) (hashes [][]byte) {
		for _, name := range names {
			hash := sha256.Sum256([]byte(name))
			hashes = append(hashes, hash[:])
		}
		return hashes
	}
	there := named("here", "there", "used", "unused", "renamed")
	for range 2 {
		require.NoError(t, s.RestoreDeleted(t.Context(), explore(), there))
	}
	require.NoError(t, s.RestoreDeleted(t.Context(), sessionstore.Agent{Kind: "other"}, there[:1]))
	require.Error(t, s.RestoreDeleted(t.Context(), sessionstore.Agent{Kind: "\xff"}, there))
	require.ElementsMatch(t, []string{string(imported("used").ID), string(imported("renamed").ID)},
		ids(listAll(t, s, sessionstore.Query{})))

	all, err := s.Deleted(t.Context())
	require.NoError(t, err)
	require.Equal(t, there[:1], all[sessionstore.Agent{Kind: "other"}])
	require.ElementsMatch(t, named("here", "there", "unused"), all[explore()])
	require.Zero(t, importSessions(t, s, imported("here"), imported("there"), imported("used"), imported("unused")))
	n := foreign(t, "again")
	n.StateKey = "there"
	require.True(t, restore(t, s, n), "the other store has it again")
	require.Equal(t, "there", get(t, s, "again").StateKey)
}
