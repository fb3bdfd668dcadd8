package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
	"github.com/acp-agent/acp-agent/workspace"
)

// recorder records the queries of a file.
type recorder struct {
	*file
	queries *[]query
}

type query struct {
	text string
	args []any
}

func (recorder) Open(context.Context) error { return nil } // it is open

func (recorder) Close() error { return nil }

func (r recorder) Transact(
	ctx context.Context, owner string, a core.Access, do func(core.Tx) error,
) error {
	return r.file.Transact(ctx, owner, a, func(tx core.Tx) error {
		return do(recordingTx{tx, r.queries})
	})
}

type recordingTx struct {
	core.Tx
	queries *[]query
}

func (tx recordingTx) Query(text string, args ...any) (core.Rows, error) {
	if !strings.Contains(text, "FROM drafts") { // of the purge
		*tx.queries = append(*tx.queries, query{text, args})
	}
	return tx.Tx.Query(text, args...)
}

// The ranges of a list in its query, and each with the next step in its plan.
var (
	rangeText = regexp.MustCompile(`FROM sessions INDEXED BY .*?\(updated, id\)`)
	rangePlan = regexp.MustCompile(`SEARCH sessions .*\n.*`)
)

// Every range of a list is a range of an index, in its order.
//
// Clause S7.
func TestQueryPlans(t *testing.T) {
	s := large(t, 1000)
	for name, q := range manyQueries(t) {
		for _, archive := range []sessionstore.ArchiveFilter{sessionstore.ArchivedToo, sessionstore.WithoutArchived, sessionstore.OnlyArchived} {
			for _, unused := range []sessionstore.UnusedFilter{{}, {Before: time.UnixMilli(1_700_000_010_000), Keep: []sessionstore.ID{"a", "b"}}} {
				q.Archive, q.Unused = archive, unused
				t.Run(fmt.Sprintf("S7/A35/%s/archive %d, unused %v", name, archive, unused), func(t *testing.T) {
					var queries []query
					recorded := core.New(recorder{s.file, &queries}, core.Options{})
					_, err := recorded.List(t.Context(), q)
					require.NoError(t, err)
					require.NoError(t, recorded.Close())
					require.Len(t, queries, 2)
					page := queries[1]
					plan := explain(t, s, page.text, page.args...)
					require.NotRegexp(t, `SCAN (sessions|s|agents)\b`, plan)
					require.Contains(t, plan, "SEARCH s USING INDEX by_id (owner=? AND id=?)")
					parts := rangeText.FindAllString(page.text, -1)
					require.NotEmpty(t, parts)
					plans := rangePlan.FindAllString(plan, -1)
					require.Len(t, plans, len(parts), plan)
					for i, part := range parts {
						if strings.Contains(part, " id IN ") {
							require.Contains(t, plans[i], "SEARCH sessions USING INDEX by_id (owner=? AND id=?)")
							continue
						}
						require.Regexp(t, `^SEARCH sessions USING (COVERING )?INDEX by_\w+ \(owner=\? AND agent=\? AND listing=\?( AND \w+_hash=\?)?`+
							` AND (updated>\? AND )?\(updated,id\)<\(\?,\?\)\)\nSCAN `, plans[i], "without a sort")
						require.Equal(t, strings.Contains(part, "_hash"), strings.Contains(plans[i], "_hash"))
					}
				})
			}
		}
	}
}

// The few rows that are purged at once are found by an index, however many there are.
//
// Clause S10.
func TestPurgePlans(t *testing.T) {
	s := opened(t, t.TempDir())
	lease := storetest.Create(t, s, "one")
	number, err := s.BeginTurn(t.Context(), lease, sessionstore.Turn{Prompt: []sessionstore.Update{
		sessionstore.StoredUpdate([]byte(`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"word"}}}`))}})
	require.NoError(t, err)
	require.NoError(t, s.EndTurn(t.Context(), lease, number))
	require.NoError(t, s.Charge(t.Context(), lease, []sessionstore.Charge{{Meter: sessionstore.TurnMeter}}))
	var queries []query
	recorded := core.New(recorder{s.file, &queries}, core.Options{})
	require.NoError(t, recorded.Delete(t.Context(), "one"))
	require.NoError(t, recorded.Close())
	tables := map[string]bool{}
	for _, q := range queries {
		if table, ok := strings.CutPrefix(q.text, "DELETE FROM "); ok {
			tables[strings.Fields(table)[0]] = true
			plan := explain(t, s, q.text, q.args...)
			require.NotContains(t, plan, "TEMP B-TREE", q.text)
			require.Regexp(t, `^SEARCH \w+ USING (INTEGER PRIMARY KEY \(rowid=\?\)|COVERING INDEX \w+ \(owner=\? AND strand=\? AND seq=\?\))`, plan)
		}
	}
	require.Len(t, tables, 3)
}

// explain returns the plan of a query.
func explain(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	rows, err := s.file.reader.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	return strings.Join(plan, "\n")
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

// large returns a store with n sessions of one agent.
func large(t testing.TB, n int) *Store {
	t.Helper()
	s := New(Options{Dir: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for i := range min(n, projects) {
		_, err := s.Create(t.Context(), sessionstore.Session{ID: sessionstore.ID(fmt.Sprint("project ", i)),
			Agent: sessionstore.Agent{Kind: "explore"}, Keys: manyKeys(t, i)})
		require.NoError(t, err)
	}
	const columns = "cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash"
	execute(t, s, "UPDATE numbers SET last = $1", 2*n)
	execute(t, s, "CREATE TEMP TABLE made AS SELECT * FROM sessions")
	execute(t, s, "DELETE FROM sessions")
	execute(t, s, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1) "+
		"INSERT INTO sessions ("+columns+", owner, id, agent, updated, key, strand, listing, title, created, generation, meta) "+
		"SELECT "+columns+", '', printf('%08x-0000-4000-8000-%012x', i*2654435761 % (1<<32), i), agent, "+
		"1700000000000 + i/3, i + 1, i + 1, i/7%3, 'a title of some words', 1700000000000, 1, '' "+
		"FROM n JOIN made ON made.id = 'project ' || (i % $2)", n, projects)
	return s
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
		storetest.Create(t, s, fmt.Sprint(i))
	}
	execute(t, s, "UPDATE sessions SET cwd = 'not absolute' WHERE id = '2'")
	for _, limit := range []int{1, 2} {
		var ids []sessionstore.ID
		for q := (sessionstore.Query{Limit: limit}); ; {
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
}
