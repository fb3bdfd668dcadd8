package sqlite

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// newIn creates a session of the agent "x" in the store of an owner.
func newIn(t *testing.T, s sessionstore.Store, id string) sessionstore.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), sessionstore.NewSession{
		ID: sessionstore.ID(id), Agent: sessionstore.Agent{Kind: "x"}, Keys: manyKeys(t, 1),
		State: []byte("state"), StateKey: id,
	})
	require.NoError(t, err)
	return lease
}

func storedIDs(t *testing.T, s sessionstore.Store) (ids []string) {
	t.Helper()
	page, err := s.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	for _, session := range page.Sessions {
		ids = append(ids, string(session.ID))
	}
	return ids
}

// What is in a file from before owners belongs to the local user. An older program that has it open
// may use it until a principal has a session.
//
// Clauses S6, N1.
func TestOwnersInOlderFile(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps()[:firstWithOwners-1])
	lease := newIn(t, older, "one")
	require.NoError(t, older.Append(t.Context(), lease, updates(2)))
	newIn(t, older, "deleted")
	require.NoError(t, older.Delete(t.Context(), "deleted"))

	newer := opened(t, dir, steps())
	ann := newer.For("ann")
	require.Equal(t, []string{"one"}, storedIDs(t, newer))
	require.Empty(t, storedIDs(t, ann))
	_, err := ann.Get(t.Context(), "one")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	n, err := newer.Import(t.Context(), sessionstore.Agent{Kind: "x"}, []sessionstore.Imported{
		{ID: "again", StateKey: "deleted", Keys: manyKeys(t, 1)},
	})
	require.NoError(t, err)
	require.Zero(t, n, "the tombstone is the local user's")
	require.NoError(t, older.Append(t.Context(), lease, updates(1)), "it is still open")
	newIn(t, older, "two")
	require.NoError(t, older.Delete(t.Context(), "two"))

	newIn(t, ann, "one")
	for _, err := range []error{older.Append(t.Context(), lease, updates(1)), older.Delete(t.Context(), "one")} {
		require.ErrorContains(t, err, "update acp-agent")
	}
	newest := opened(t, dir, append(steps(), step{sql: "CREATE TABLE more (x INTEGER) STRICT", oldest: 1}))
	require.Equal(t, []string{"one"}, storedIDs(t, newest.For("ann")))
	require.ErrorContains(t, older.Append(t.Context(), lease, updates(1)), "update acp-agent")
	require.NoError(t, newer.Append(t.Context(), lease, updates(1)))
}

// A repair keeps whose a session is, even if its agent is lost.
//
// Clauses S4, N1.
func TestRepairKeepsOwners(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, steps())
	ann := s.For("ann")
	newIn(t, s, "one")
	newIn(t, ann, "one")
	newIn(t, ann, "damaged")
	require.NoError(t, s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `PRAGMA defer_foreign_keys = ON;
			UPDATE sessions SET cwd = 'not absolute' WHERE title = '' AND id LIKE '%damaged'`)
		return err
	}))
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", dir+"/"+fileName)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "DELETE FROM agents WHERE key = (SELECT max(key) FROM agents)")
	require.NoError(t, err)
	require.NoError(t, db.Close())

	report, err := Repair(t.Context(), s.options)
	require.NoError(t, err)
	require.Equal(t, 2, report.Sessions)
	require.Equal(t, []sessionstore.ID{"damaged"}, report.Lost)
	again := opened(t, dir, steps())
	require.Equal(t, []string{"one"}, storedIDs(t, again))
	require.Equal(t, []string{"one"}, storedIDs(t, again.For("ann")))
	require.Empty(t, storedIDs(t, again.For("bob")))
	older := opened(t, dir, steps()[:firstWithOwners-1])
	_, err = older.List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "update acp-agent")
}

// Clauses A31, N1.
func TestRenamedAgentsOfOwners(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	newIn(t, s, "one")
	newIn(t, s.For("ann"), "one")
	require.NoError(t, s.Close())
	o := s.options
	o.Renamed = func(a sessionstore.Agent) sessionstore.Agent {
		if a.Kind == "x" {
			a.Kind = "y"
		}
		return a
	}
	again := New(o)
	defer again.Close()
	for _, own := range []sessionstore.Store{again, again.For("ann")} {
		id, err := own.Named(t.Context(), sessionstore.Agent{Kind: "y"}, "one")
		require.NoError(t, err)
		require.EqualValues(t, "one", id)
	}
}

// Clauses A35, N1.
func TestRetentionOfOwners(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	o := Options{Dir: dir, Retention: time.Hour, Now: func() time.Time { return now }}
	s := New(o)
	newIn(t, s, "one")
	newIn(t, s.For("ann"), "one")
	require.NoError(t, s.Close())
	now = now.Add(48 * time.Hour)
	s = New(o)
	require.Len(t, storedIDs(t, s.For("ann")), 1)
	require.NoError(t, s.Close())
	s = opened(t, dir, steps())
	require.Empty(t, storedIDs(t, s))
	require.Empty(t, storedIDs(t, s.For("ann")))
}
