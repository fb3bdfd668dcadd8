package sqlite

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestS7_EveryListIsAnIndexRange(t *testing.T) {
	s := large(t, manySessions)
	explain := func(text string, args ...any) (plan []string) {
		require.NoError(t, s.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...)
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
		for _, r := range indexRanges(q) {
			t.Run("S7/"+name+"/"+strings.Join(r.columns, " and "), func(t *testing.T) {
				text, args := r.query(1, position{updated: math.MaxInt64}, 51)
				plan := explain(text, args...)
				require.Len(t, plan, 1, plan)
				require.Regexp(t, `^SEARCH sessions USING (COVERING )?INDEX by_\w+ \(agent=\?( AND \w+_hash=\?){`+
					string(rune('0'+len(r.columns)))+`} AND \(updated,id\)<\(\?,\?\)\)$`, plan[0])
			})
		}
	}
	t.Run("S7/the page's records", func(t *testing.T) {
		plan := strings.Join(explain(recordsQuery, "[1,2]"), "\n")
		require.Contains(t, plan, "SEARCH sessions USING INTEGER PRIMARY KEY")
		require.NotContains(t, plan, "SCAN sessions")
		require.NotContains(t, plan, "TEMP B-TREE")
	})
}

func TestA18_PagesOfALargeStoreAreComplete(t *testing.T) {
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
