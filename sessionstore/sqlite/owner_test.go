package sqlite

import (
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
	require.NoError(t, s.write(t.Context(), func(tx *transaction) error {
		err := tx.exec(`PRAGMA defer_foreign_keys = ON;
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
