package sqlite

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause S7.
func TestQueryPlans(t *testing.T) {
	s := large(t, 1000)
	explain := func(text string, args ...any) (plan []string) {
		require.NoError(t, s.read(t.Context(), func(tx *transaction) error {
			rows, err := tx.query("EXPLAIN QUERY PLAN "+text, args...)
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
				plan = append(plan, detail)
			}
			return rows.Err()
		}))
		return plan
	}
	for name, q := range manyQueries(t) {
		for _, archive := range []sessionstore.ArchiveFilter{sessionstore.ArchivedToo, sessionstore.WithoutArchived, sessionstore.OnlyArchived} {
			for _, unused := range []sessionstore.UnusedFilter{{}, {Before: time.UnixMilli(1_700_000_010_000), Keep: []sessionstore.ID{"a", "b"}}} {
				q.Archive, q.Unused = archive, unused
				for _, r := range rules.Ranges(q) {
					t.Run(fmt.Sprintf("S7/A35/%s/%v/archive %d, listing %d, since %d %v", name, r.Where, archive, r.Listing, r.Since, r.Keep), func(t *testing.T) {
						text, args := owner("").rangeQuery(r, 1, position{updated: math.MaxInt64}, 51)
						plan := explain(text, args...)
						if r.Keep != nil {
							require.Equal(t, "SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (id=?)", plan[0])
							require.NotContains(t, strings.Join(plan, "\n"), "SCAN sessions")
							return
						}
						require.Len(t, plan, 1, plan)
						require.Regexp(t, `^SEARCH sessions USING (COVERING )?INDEX by_\w+ \(agent=\?( AND \w+_hash=\?){`+
							string(rune('0'+len(r.Where)))+`} AND listing=\? AND (updated>\? AND )?\(updated,id\)<\(\?,\?\)\)$`, plan[0])
					})
				}
			}
		}
	}
	t.Run("S7/the page's records", func(t *testing.T) {
		plan := strings.Join(explain(recordsQuery, "[1,2]"), "\n")
		require.Contains(t, plan, "SEARCH sessions USING INTEGER PRIMARY KEY")
		require.Contains(t, plan, "SEARCH labels USING INTEGER PRIMARY KEY")
		require.NotContains(t, plan, "SCAN sessions")
		require.NotContains(t, plan, "TEMP B-TREE")
	})
}

// Clause A18.
func TestPagesOfLargeStore(t *testing.T) {
	const sessions = 5_000
	s := large(t, sessions)
	for name, want := range map[string]int{"none": sessions, "cwd": sessions / projects, "roots": sessions / 2 / lists, "no roots": sessions / 2} {
		q := manyQueries(t)[name]
		q.Limit = 97
		seen := map[sessionstore.ID]bool{}
		for {
			page, err := s.List(t.Context(), q)
			require.NoError(t, err)
			for _, session := range page.Sessions {
				require.False(t, seen[session.ID])
				seen[session.ID] = true
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		require.Len(t, seen, want, name)
	}
}

// A large store has sessions in 500 projects, half of them with one of 5 lists of additional roots.
// Every tenth was opened through a symbolic link. A third of the sessions is archived, and a third
// unused.
const (
	projects = 500
	lists    = 5
)

func absolute(format string, args ...any) string {
	return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) + filepath.FromSlash(fmt.Sprintf(format, args...))
}

func project(i int) string { return absolute("home/dev/src/project-%d", i%projects) }

func additional(i int) []string {
	if i%2 == 0 {
		return nil
	}
	return []string{absolute("home/dev/src/lib-%d", i/2%lists), absolute("home/dev/docs-%d", i/2%lists)}
}

func manyKeys(t testing.TB, i int) sessionstore.Keys {
	roots, err := workspace.NewRoots(project(i), additional(i))
	require.NoError(t, err)
	k := sessionstore.Keys{Roots: roots}
	for n, dir := range roots.All() {
		if i%10 == 0 {
			dir, err = workspace.ParseDir(absolute("mnt/project-%d/%d", i%projects, n))
			require.NoError(t, err)
		}
		k.Real = append(k.Real, dir)
	}
	return k
}

// manySessions is the number of sessions in a large store.
const manySessions = 100_000

// large returns a store with n sessions of one agent. It creates the indexes last, which is faster.
func large(t testing.TB, n int) *Store {
	t.Helper()
	s := New(Options{Dir: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.write(t.Context(), func(tx *transaction) error {
		exec := func(text string, args ...any) {
			err := tx.exec(text, args...)
			require.NoError(t, err)
		}
		exec("INSERT INTO agents VALUES (1, 'explore', '')")
		indexes := dropIndexes(t, tx)
		const insert = "INSERT INTO sessions (cwd, dirs, real_cwd, real_dirs, " +
			"cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash, id, updated, strand, listing, " +
			"agent, title, created, generation, turns, open, last) "
		const rest = `printf('%08x-0000-4000-8000-%012x', i*2654435761 % (1<<32), i),
			1700000000000 + i/3, i + 1, i/7%3, 1, 'a title of some words', 1700000000000, 1, 0, 0, 0`
		for i := range min(n, projects) {
			exec(insert+"SELECT ?, ?, ?, ?, ?, ?, ?, ?, "+rest+" FROM (SELECT ? AS i)",
				append(keyValues(manyKeys(t, i)), i)...)
		}
		exec("WITH RECURSIVE numbers(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < ?2) "+
			insert+"SELECT cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, "+
			"real_dirs_hash, "+rest+
			" FROM numbers, sessions WHERE strand = i % ?1 + 1 AND i < ?2", projects, n)
		exec("UPDATE meta SET generations = ?", n)
		for _, index := range indexes {
			exec(index)
		}
		return nil
	}))
	return s
}

// dropIndexes drops the indexes and returns the statements that create them.
func dropIndexes(t testing.TB, tx *transaction) (made []string) {
	t.Helper()
	rows, err := tx.query("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND name LIKE 'by_%'")
	require.NoError(t, err)
	var names []string
	for rows.Next() {
		var name, text string
		require.NoError(t, rows.Scan(&name, &text))
		names, made = append(names, name), append(made, text)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	for _, name := range names {
		err := tx.exec("DROP INDEX " + name)
		require.NoError(t, err)
	}
	return made
}

// manyQueries returns all combinations of filters.
func manyQueries(t testing.TB) map[string]sessionstore.Query {
	k := manyKeys(t, 1)
	cwd := &sessionstore.DirFilter{Spelling: k.Roots.Cwd(), Real: k.Real[0]}
	list := &sessionstore.DirsFilter{Spelling: k.Roots.Additional(), Real: k.Real[1:]}
	agent := sessionstore.Agent{Kind: "explore"}
	return map[string]sessionstore.Query{
		"none": {Agent: agent}, "cwd": {Agent: agent, Cwd: cwd}, "roots": {Agent: agent, Additional: list},
		"cwd and roots": {Agent: agent, Cwd: cwd, Additional: list}, "no roots": {Agent: agent, Additional: &sessionstore.DirsFilter{}},
		"any agent": {}, "any agent, cwd and roots": {Cwd: cwd, Additional: list},
	}
}

// Clause S4.
func TestInvalidRowIsSkipped(t *testing.T) {
	log := &logtest.Text{}
	s := New(Options{Dir: t.TempDir(), Logger: log.Logger(slog.LevelWarn)})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for i := range 5 {
		made(t, s, fmt.Sprint(i))
	}
	require.NoError(t, s.write(t.Context(), func(tx *transaction) error {
		err := tx.exec("UPDATE sessions SET cwd = 'not absolute' WHERE id = '2'")
		return err
	}))
	for range 2 {
		var ids []sessionstore.ID
		for q := (sessionstore.Query{Limit: 2}); ; {
			page, err := s.List(t.Context(), q)
			require.NoError(t, err)
			for _, session := range page.Sessions {
				ids = append(ids, session.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		require.ElementsMatch(t, []sessionstore.ID{"0", "1", "3", "4"}, ids)
	}
	require.Equal(t, 1, log.Count("cannot list a session"))
	_, err := s.Get(t.Context(), "2")
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Contains(t, unavailable.Hint, "sessions repair")
	require.NoError(t, s.Close())

	report, err := Repair(t.Context(), s.options)
	require.NoError(t, err)
	require.Equal(t, []sessionstore.ID{"2"}, report.Lost)
	require.Equal(t, 4, report.Sessions)
}
