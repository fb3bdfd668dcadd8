package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause S6.
func TestOlderProgramOnNewerFile(t *testing.T) {
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

// Clause S6.
func TestMigrateEveryVersion(t *testing.T) {
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

// A program of schema version 2 that is still open lists with the queries that it has, and what it
// writes is listed rightly.
//
// Clauses S6, A35.
func TestListsOfOlderProgram(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps()[:2])
	lease := made(t, older, "used before")
	_, err := older.BeginTurn(t.Context(), lease, sessionstore.Turn{})
	require.NoError(t, err)
	made(t, older, "unused")
	lease = made(t, older, "used later")
	newer := opened(t, dir, steps())
	hidden := sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: time.Now().Add(time.Hour)}}
	listed := func() (ids []string) {
		page, err := newer.List(t.Context(), hidden)
		require.NoError(t, err)
		for _, s := range page.Sessions {
			ids = append(ids, string(s.ID))
		}
		return ids
	}
	require.Equal(t, []string{"used before"}, listed())
	require.NoError(t, older.Append(t.Context(), lease, updates(1)))
	require.NoError(t, older.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO sessions (id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
				title, created, updated, generation, turns, open, strand, last)
			SELECT 'fork', agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
				title, created, updated, 1000, turns, open, 1000, last FROM sessions WHERE id = 'used later';
			INSERT INTO inherits SELECT fork.key, source.last, source.strand FROM sessions fork, sessions source
				WHERE fork.id = 'fork' AND source.id = 'used later'`)
		return err
	}), "as older programs fork")
	require.ElementsMatch(t, []string{"used before", "used later", "fork"}, listed())

	k := columnsOf(manyKeys(t, 1))
	for query, args := range map[string][]any{
		"by_activity WHERE agent = ?":                                                                                           {1},
		"by_cwd WHERE agent = ? AND cwd_hash = ? AND cwd = ?":                                                                   {1, k.cwd.hash, k.cwd.text},
		"by_real_cwd WHERE agent = ? AND real_cwd_hash = ? AND real_cwd = ?":                                                    {1, k.realCwd.hash, k.realCwd.text},
		"by_dirs WHERE agent = ? AND dirs_hash = ? AND dirs = ?":                                                                {1, k.dirs.hash, k.dirs.text},
		"by_real_dirs WHERE agent = ? AND real_dirs_hash = ? AND real_dirs = ?":                                                 {1, k.realDirs.hash, k.realDirs.text},
		"by_cwd_dirs WHERE agent = ? AND cwd_hash = ? AND cwd = ? AND dirs_hash = ? AND dirs = ?":                               {1, k.cwd.hash, k.cwd.text, k.dirs.hash, k.dirs.text},
		"by_cwd_real_dirs WHERE agent = ? AND cwd_hash = ? AND cwd = ? AND real_dirs_hash = ? AND real_dirs = ?":                {1, k.cwd.hash, k.cwd.text, k.realDirs.hash, k.realDirs.text},
		"by_real_cwd_dirs WHERE agent = ? AND real_cwd_hash = ? AND real_cwd = ? AND dirs_hash = ? AND dirs = ?":                {1, k.realCwd.hash, k.realCwd.text, k.dirs.hash, k.dirs.text},
		"by_real_cwd_real_dirs WHERE agent = ? AND real_cwd_hash = ? AND real_cwd = ? AND real_dirs_hash = ? AND real_dirs = ?": {1, k.realCwd.hash, k.realCwd.text, k.realDirs.hash, k.realDirs.text},
	} {
		require.NoError(t, older.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			rows, err := readPositions(ctx, tx, "SELECT updated, id, key FROM sessions INDEXED BY "+query+
				" AND (updated, id) < (?, ?) ORDER BY updated DESC, id DESC LIMIT ?", append(args, int64(math.MaxInt64), "", 51))
			require.Len(t, rows, 4, query)
			require.True(t, slices.IsSortedFunc(rows, position.compare))
			return err
		}))
	}
}

// Clause S6.
func TestFileNeedsNewerProgram(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")
	newest := opened(t, dir, append(steps(), step{sql: "ALTER TABLE sessions DROP COLUMN title", oldest: len(steps()) + 1}))
	require.NoError(t, newest.Append(t.Context(), lease, nil))

	fresh := opened(t, dir, steps())
	_, err := fresh.List(t.Context(), sessionstore.Query{})
	for _, err := range []error{err, older.Append(t.Context(), lease, updates(1))} {
		var unavailable *sessionstore.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, filepath.Join(dir, fileName), unavailable.Medium)
		require.Contains(t, unavailable.Hint, "update acp-agent")
		require.ErrorAs(t, err, new(*newerError))
	}
}

// Clause S6.
func TestFailedStepIsRolledBack(t *testing.T) {
	dir := t.TempDir()
	lease := made(t, opened(t, dir, steps()), "one")
	broken := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT; CREATE TABLE meta (x INTEGER) STRICT", oldest: 1}))
	require.ErrorAs(t, broken.Append(t.Context(), lease, nil), new(*sessionstore.UnavailableError))
	again := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT", oldest: 1}))
	require.NoError(t, again.Append(t.Context(), lease, nil))
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
