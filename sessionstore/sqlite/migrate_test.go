package sqlite

import (
	"cmp"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// with returns the steps of a later version of the program, which has one more.
func with(sql string, oldest int) []step {
	version := newest(steps()) + 1
	return append(steps(), step{version: version, sql: sql, oldest: cmp.Or(oldest, newest(steps()))})
}

// A later version migrates a file of this one, and what this one has open stays usable.
//
// Clause S6.
func TestMigrateFromThisVersion(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")
	require.NoError(t, older.Append(t.Context(), lease, updates(3)))

	later := with("ALTER TABLE sessions ADD COLUMN note TEXT; CREATE TABLE more (x INTEGER) STRICT", 0)
	newer := opened(t, dir, later)
	made(t, newer, "two")
	require.NoError(t, older.Append(t.Context(), lease, updates(3)), "the older one is still open")
	made(t, older, "three")
	another := opened(t, dir, steps())
	page, err := another.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "and another one opens")
	require.Len(t, page.Sessions, 3)

	_, err = newer.Activate(t.Context(), "one", sessionstore.Activation{Keys: manyKeys(t, 1)})
	require.NoError(t, err)
	require.ErrorAs(t, older.Append(t.Context(), lease, nil), new(*sessionstore.FencedError))
	n := 0
	for _, err := range newer.History(t.Context(), "one") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 6, n)
	require.NoError(t, older.Delete(t.Context(), "one"))
}

// What sessions have used before version 11 is not known. A program of version 10 stays usable.
//
// Clauses S6, K1.
func TestMigrateToCharges(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps()[:1])
	used := made(t, older, "used")
	_, err := older.BeginTurn(t.Context(), used, sessionstore.Turn{})
	require.NoError(t, err)
	made(t, older, "unused")

	newer := opened(t, dir, steps())
	for id, before := range map[sessionstore.ID]bool{"used": true, "unused": false} {
		account, err := newer.Account(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, before, account.Before, id)
	}
	require.NoError(t, newer.Charge(t.Context(), used, []sessionstore.Charge{
		{Meter: sessionstore.TurnMeter, Amount: 1}}))
	require.NoError(t, older.Append(t.Context(), used, updates(1)))
	require.NoError(t, older.Delete(t.Context(), "used"))
	sums, err := newer.Sums(t.Context(), sessionstore.ChargeQuery{})
	require.NoError(t, err)
	require.Empty(t, sums)
}

// Clause S6.
func TestFileFromBeforeTheFirstRelease(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, steps())
	made(t, s, "one")
	require.NoError(t, s.write(t.Context(), func(tx *transaction) error {
		return tx.exec("PRAGMA user_version = 9")
	}))
	before := opened(t, dir, steps())
	_, err := before.List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "before the first release")
	require.ErrorContains(t, err, "move it away")
	require.ErrorContains(t, err, fileName)
	_, err = Repair(t.Context(), before.options)
	require.ErrorIs(t, err, rules.ErrUnreleased)
}

// Clause S6.
func TestFileNeedsNewerProgram(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")
	later := opened(t, dir, with("ALTER TABLE sessions DROP COLUMN title", newest(steps())+1))
	require.NoError(t, later.Append(t.Context(), lease, nil))

	fresh := opened(t, dir, steps())
	_, err := fresh.List(t.Context(), sessionstore.Query{})
	for _, err := range []error{err, older.Append(t.Context(), lease, updates(1))} {
		var unavailable *sessionstore.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, filepath.Join(dir, fileName), unavailable.Medium)
		require.Contains(t, unavailable.Hint, "update acp-agent")
		require.ErrorAs(t, err, new(*rules.NewerError))
	}
}

// Clause S6.
func TestFailedStepIsRolledBack(t *testing.T) {
	dir := t.TempDir()
	lease := made(t, opened(t, dir, steps()), "one")
	broken := opened(t, dir, with("CREATE TABLE half (x INTEGER) STRICT; CREATE TABLE meta (x INTEGER) STRICT", 0))
	require.ErrorAs(t, broken.Append(t.Context(), lease, nil), new(*sessionstore.UnavailableError))
	again := opened(t, dir, with("CREATE TABLE half (x INTEGER) STRICT", 0))
	require.NoError(t, again.Append(t.Context(), lease, nil))
}

func TestPragmas(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	made(t, s, "one")
	require.NoError(t, s.use(t.Context(), func(db *database) error {
		for pragma, want := range map[string]string{
			"application_id": fmt.Sprint(applicationID), "user_version": fmt.Sprint(newest(steps())),
			"auto_vacuum": "2", "journal_mode": "wal", "secure_delete": "1", "foreign_keys": "1",
		} {
			for name, pool := range map[string]*sql.DB{"writer": db.writer, "reader": db.reader} {
				var got string
				require.NoError(t, pool.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
				require.Equal(t, want, strings.ToLower(got), "%s of the %s", pragma, name)
			}
		}
		return nil
	}))
}
