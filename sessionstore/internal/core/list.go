package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// List implements [sessionstore.Store]. A page is the beginning of a few merged index ranges: one
// for each agent, listing and combination of spelled and real paths that the filters match.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	from, err := q.From()
	if err != nil {
		return sessionstore.Page{}, err
	}
	page := sessionstore.Page{}
	err = s.list(ctx, func(tx *transaction) {
		positions := tx.positions(q, tx.agents(q.Agent), from)
		page.Next = ""
		if size := q.Size(); len(positions) > size {
			positions = positions[:size]
			page.Next = q.After(positions[size-1])
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

// agent returns the key of one of the owner's agents, or 0.
func (tx *transaction) agent(a sessionstore.Agent) int64 {
	if keys := tx.agents(a); len(keys) == 1 {
		return keys[0]
	}
	return 0
}

// Listing is which lists show a session.
type Listing int64

// The listings, as they are stored.
const (
	Ordinary Listing = iota
	Archived
	Unused
)

// listRange is a part of a list that is in its order in an index: the sessions of an agent with a
// listing, whose keys have certain values.
type listRange struct {
	listing Listing
	since   int64 // of the last activity, 0 for all
	// keep, if not nil, are the only sessions of the range, and since is 0.
	keep  []sessionstore.ID
	where []condition
}

// condition requires that a column has a text.
type condition struct{ column, text string }

// ranges returns the ranges whose union q's filters match. A filter matches by its spelling or its
// real path.
func ranges(q sessionstore.Query) []listRange {
	all := listings(q)
	if f := q.Cwd; f != nil {
		all = either(all, "cwd", f.Spelling.String(), f.Real.String())
	}
	if f := q.Additional; f != nil {
		all = either(all, "dirs", listText(f.Spelling.Strings()), listText(pathsOf(f.Real)))
	}
	return all
}

// listings returns the ranges of the sessions that q matches without regard to their roots.
func listings(q sessionstore.Query) []listRange {
	if q.Archive == sessionstore.OnlyArchived {
		return []listRange{{listing: Archived}}
	}
	unused := listRange{listing: Unused}
	if !q.Unused.Before.IsZero() {
		unused.since = q.Unused.Before.UnixMilli()
	}
	all := []listRange{{listing: Ordinary}, unused}
	if q.Archive == sessionstore.ArchivedToo {
		all = append(all, listRange{listing: Archived})
	}
	var keep []sessionstore.ID
	for _, id := range q.Unused.Keep {
		if id.Validate() == nil {
			keep = append(keep, id)
		}
	}
	if unused.since != 0 && len(keep) > 0 {
		all = append(all, listRange{listing: Unused, keep: keep})
	}
	return all
}

// either splits each range in two: one for the column name, and one for the column of its real
// path.
func either(all []listRange, name, spelling, real string) (split []listRange) {
	for _, r := range all {
		for _, c := range []condition{{name, spelling}, {"real_" + name, real}} {
			one := r
			one.where = append(r.where[:len(r.where):len(r.where)], c)
			split = append(split, one)
		}
	}
	return split
}

// positions returns the first positions of q's ranges after from, each session once: one more than
// fit in a page.
func (tx *transaction) positions(
	q sessionstore.Query, agents []int64, from sessionstore.Position,
) (all []sessionstore.Position) {
	for _, agent := range agents {
		for _, r := range ranges(q) {
			var (
				updated int64
				id      sessionstore.ID
			)
			text, args := tx.rangeQuery(r, agent, from, q.Size()+1)
			tx.each([]any{&updated, (*string)(&id)}, func() {
				all = append(all, sessionstore.Position{Updated: toTime(updated), ID: id})
			}, text, args...)
		}
	}
	slices.SortFunc(all, sessionstore.Position.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), q.Size()+1)]
}

// rangeQuery returns a query for positions in a range, and its arguments.
func (tx *transaction) rangeQuery(
	r listRange, agent int64, from sessionstore.Position, limit int,
) (string, []any) {
	args := []any{agent, int64(r.listing), from.Updated.UnixMilli(), string(from.ID)}
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
func (tx *transaction) records(positions []sessionstore.Position) []sessionstore.Session {
	sessions := make([]sessionstore.Session, 0, len(positions))
	parsed := make(parsedKeys)
	for some := range slices.Chunk(positions, sessionstore.PageSize) {
		found := make(map[sessionstore.ID]sessionstore.Session, len(some))
		var (
			values []string
			args   []any
		)
		for _, p := range some {
			args = append(args, string(p.ID))
			values = append(values, fmt.Sprintf("($%d)", len(args)+1))
		}
		// Without statistics PostgreSQL would look for a list of ids in an index of lists.
		text := "WITH page (id) AS (VALUES " + strings.Join(values, ", ") + ") SELECT " +
			recordColumns + " FROM page JOIN sessions s ON s.owner = $1 AND s.id = page.id"
		tx.rows(func(rows Rows) {
			r, err := scanRecord(rows, parsed)
			if !tx.isDamaged(r.ID, err) {
				found[r.ID] = r
			}
		}, text, args...)
		for _, p := range some {
			if r, ok := found[p.ID]; ok {
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
