package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestS6_OlderProgramOnNewerFile(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")

	added := append(steps(), step{sql: "ALTER TABLE sessions ADD COLUMN note TEXT; CREATE TABLE more (x INTEGER) STRICT", oldest: 1})
	newer := opened(t, dir, added)
	made(t, newer, "two")
	require.NoError(t, older.Append(t.Context(), lease, updates(3)), "the older one is still open")
	made(t, older, "three")
	another := opened(t, dir, steps())
	page, err := another.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "and another one opens")
	require.Len(t, page.Sessions, 3)
}

func TestS6_MigrateEveryVersion(t *testing.T) {
	for version := 1; version < len(steps()); version++ {
		dir := t.TempDir()
		older := opened(t, dir, steps()[:version])
		lease := made(t, older, "one")
		require.NoError(t, older.Append(t.Context(), lease, updates(3)))
		newer := opened(t, dir, steps())
		draft, err := newer.NewDraft(t.Context(), "one")
		require.NoError(t, err)
		require.NoError(t, draft.Append(t.Context(), updates(5)))
		require.NoError(t, older.Append(t.Context(), lease, updates(1)), "version %d is still open", version)
		_, err = newer.Activate(t.Context(), "one", sessionstore.Activation{Keys: manyKeys(t, 1), History: draft})
		require.NoError(t, err)
		require.ErrorAs(t, older.Append(t.Context(), lease, nil), new(*sessionstore.FencedError))
		n := 0
		for _, err := range older.History(t.Context(), "one") {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 5, n)
		require.NoError(t, older.Delete(t.Context(), "one"))
	}
}

func TestS6_FileNeedsNewerProgram(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")
	newest := opened(t, dir, append(steps(), step{sql: "ALTER TABLE sessions DROP COLUMN title", oldest: len(steps()) + 1}))
	require.NoError(t, newest.Check(t.Context(), lease))

	fresh := opened(t, dir, steps())
	_, err := fresh.List(t.Context(), sessionstore.Query{})
	for _, err := range []error{err, older.Append(t.Context(), lease, updates(1))} {
		var unavailable *sessionstore.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, filepath.Join(dir, fileName), unavailable.Path)
		require.Contains(t, unavailable.Hint, "update acp-agent")
		require.ErrorAs(t, err, new(*newerError))
	}
}

func TestS6_FailedStepIsRolledBack(t *testing.T) {
	dir := t.TempDir()
	lease := made(t, opened(t, dir, steps()), "one")
	broken := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT; CREATE TABLE meta (x INTEGER) STRICT", oldest: 1}))
	require.ErrorAs(t, broken.Check(t.Context(), lease), new(*sessionstore.UnavailableError))
	again := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT", oldest: 1}))
	require.NoError(t, again.Check(t.Context(), lease))
}

func TestPragmas(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	made(t, s, "one")
	require.NoError(t, s.use(t.Context(), func(db *database) error {
		for pragma, want := range map[string]string{
			"application_id": fmt.Sprint(applicationID), "user_version": fmt.Sprint(len(steps())),
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
