package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// List implements [sessionstore.Store]. A page is the beginning of a few merged index ranges: one
// for each agent, listing and combination of spelled and real paths that the filters match.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	start, paging, err := q.From()
	if err != nil {
		return sessionstore.Page{}, err
	}
	if start.ID.Validate() != nil {
		return sessionstore.Page{}, &sessionstore.CursorError{Cursor: q.Cursor}
	}
	from := position{updated: math.MaxInt64}
	if paging {
		from = position{updated: start.Updated.UnixMilli(), id: string(start.ID)}
	}
	page := sessionstore.Page{}
	err = s.list(ctx, func(tx *transaction) {
		positions := tx.positions(q, tx.agents(q.Agent), from)
		page.Next = ""
		if size := q.Size(); len(positions) > size {
			positions = positions[:size]
			last := positions[size-1]
			page.Next = q.After(sessionstore.Position{
				Updated: toTime(last.updated), ID: sessionstore.ID(last.id),
			})
		}
		page.Sessions = tx.records(positions)
	})
	if err != nil {
		return sessionstore.Page{}, err
	}
	return page, nil
}

// agents returns the keys of the owner's agents that a query matches.
func (tx *transaction) agents(a sessionstore.Agent) (keys []int64) {
	if a.Validate() != nil {
		return nil
	}
	var key int64
	tx.each([]any{&key}, func() { keys = append(keys, key) },
		"SELECT key FROM agents WHERE owner = $1 AND ($2 = '' OR kind = $2 AND profile = $3)",
		a.Kind, a.Profile)
	return keys
}

// agent returns the key of one of the owner's agents, 0 if there is none.
func (tx *transaction) agent(a sessionstore.Agent) int64 {
	if keys := tx.agents(a); len(keys) == 1 {
		return keys[0]
	}
	return 0
}

// position is the position of a session in a list.
type position struct {
	updated int64
	id      string
}

// compare orders positions like a list.
func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(other.updated, p.updated), strings.Compare(other.id, p.id))
}

// positions returns the first positions of q's ranges after from, each session once: one more than
// fit in a page.
func (tx *transaction) positions(
	q sessionstore.Query, agents []int64, from position,
) (all []position) {
	var p position
	for _, agent := range agents {
		for _, r := range ranges(q) {
			text, args := tx.rangeQuery(r, agent, from, q.Size()+1)
			tx.each([]any{&p.updated, &p.id}, func() { all = append(all, p) }, text, args...)
		}
	}
	slices.SortFunc(all, position.compare)
	all = slices.Compact(all)
	return all[:min(len(all), q.Size()+1)]
}

// rangeQuery returns a query for positions in a range, and its arguments.
func (tx *transaction) rangeQuery(
	r listRange, agent int64, from position, limit int,
) (string, []any) {
	args := []any{agent, int64(r.listing), from.updated, from.id}
	add := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args)+1)
	}
	where, index := "agent = $2 AND listing = $3", "by_activity"
	for i, c := range r.where {
		if i == 0 {
			index = "by_" + c.column
		}
		where += " AND " + c.column + "_hash = " + add(hashOf(c.text)) +
			" AND " + c.column + " = " + add(c.text)
	}
	if r.since != 0 {
		where += " AND updated >= " + add(r.since)
	}
	table := "sessions"
	if r.keep != nil {
		index = "by_id"
		list, ids := placeholders(r.keep, len(args)+2)
		where, args = where+" AND id IN ("+list+")", append(args, ids...)
	}
	if by := tx.db.Traits().IndexedBy; by != "" {
		table += by + index
	}
	// With a parameter as its limit PostgreSQL would plan for many rows, and sort them.
	return fmt.Sprint("SELECT updated, id FROM ", table, " WHERE owner = $1 AND ", where,
		" AND (updated, id) < ($4, $5) ORDER BY updated DESC, id DESC LIMIT ", limit), args
}

// records returns the sessions at positions, in their order. It leaves out those whose rows are
// damaged, so that the others are still listed.
func (tx *transaction) records(positions []position) []sessionstore.Session {
	sessions := make([]sessionstore.Session, 0, len(positions))
	parsed := make(parsedKeys)
	for some := range slices.Chunk(positions, sessionstore.PageSize) {
		found := make(map[string]sessionstore.Session, len(some))
		var (
			values []string
			args   []any
		)
		for _, p := range some {
			args = append(args, p.id)
			values = append(values, fmt.Sprintf("($%d)", len(args)+1))
		}
		// Without statistics PostgreSQL would look for a list of ids in an index of lists.
		text := "WITH page (id) AS (VALUES " + strings.Join(values, ", ") + ") SELECT " +
			recordColumns + " FROM page JOIN sessions s ON s.owner = $1 AND s.id = page.id"
		tx.rows(func(rows Rows) {
			r, err := scanRecord(rows, parsed)
			if !tx.isDamaged(r.ID, err) {
				found[string(r.ID)] = r
			}
		}, text, args...)
		for _, p := range some {
			if r, ok := found[p.id]; ok {
				sessions = append(sessions, r)
			}
		}
	}
	return sessions
}

// isDamaged reports whether a session is left out because of its row, and logs that once. Other
// errors end the transaction.
func (tx *transaction) isDamaged(id sessionstore.ID, err error) bool {
	if !errors.As(err, new(*DamageError)) {
		must(err)
		return false
	}
	if _, again := tx.damaged.LoadOrStore(tx.owner+"\x00"+string(id), true); !again {
		tx.log.Warn("cannot list a session because its row is invalid",
			"session", string(id), "error", err)
	}
	return true
}

// Size implements [sessionstore.Store].
func (s *Store) Size(ctx context.Context) (bytes int, err error) {
	err = s.list(ctx, func(tx *transaction) {
		tx.row([]any{&bytes}, `
			SELECT CAST($2 AS bigint) * (SELECT count(*) FROM sessions WHERE owner = $1)
				+ (SELECT coalesce(sum(length(body)), 0) FROM sessions s
					JOIN segments g ON g.owner = s.owner AND g.strand = s.strand WHERE s.owner = $1)
				+ (SELECT coalesce(sum(length(body)), 0) FROM states WHERE owner = $1)`,
			sessionstore.SessionBytes)
	})
	return bytes, err
}
