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
func (s *Store) List(
	ctx context.Context, q sessionstore.Query,
) (page sessionstore.Page, err error) {
	from, err := q.From()
	if err != nil {
		return page, err
	}
	return transact(ctx, s, List, func(tx *transaction) sessionstore.Page {
		return tx.page(q, from)
	})
}

// page returns the sessions of q's list after from. It leaves out those whose rows are damaged, so
// that the others are still listed.
func (tx *transaction) page(q sessionstore.Query, from sessionstore.Position) sessionstore.Page {
	page := sessionstore.Page{Sessions: make([]sessionstore.Session, 0, q.Size())}
	var found []entry
	for agents := range slices.Chunk(tx.agents(q.Agent), maxAgents) {
		found = append(found, tx.begin(q, from, agents)...)
	}
	slices.SortStableFunc(found, func(a, b entry) int { return a.position().Compare(b.position()) })
	last := sessionstore.Position{}
	for n, one := range found {
		if n == q.Size() {
			page.Next = q.After(last)
			break
		}
		if !tx.skipDamaged(one.ID, one.err) {
			page.Sessions = append(page.Sessions, one.Session)
		}
		last = one.position()
	}
	return page
}

// entry is a row of a list, or its position with what is wrong with it.
type entry struct {
	sessionstore.Session
	err error
}

func (e entry) position() sessionstore.Position {
	return sessionstore.Position{Updated: e.Updated, ID: e.ID}
}

// maxAgents is the maximum number of agents in one statement. SQLite plans it in a time that grows
// with the square of its parts, and allows 500.
const maxAgents = 20

// begin returns the first sessions of some agents in q's list after from, one more than a page has.
func (tx *transaction) begin(
	q sessionstore.Query, from sessionstore.Position, agents []int64,
) (found []entry) {
	args := []any{from.Updated.UnixMilli(), string(from.ID)}
	var parts []string
	for _, agent := range agents {
		for _, r := range ranges(q) {
			r.agent = agent
			parts = append(parts, tx.rangeQuery(r, q.Size()+1, &args))
		}
	}
	// SQLite reads the page first because of CROSS, and plans fast because of DISTINCT.
	text := fmt.Sprint("WITH page (at, of) AS (SELECT DISTINCT * FROM (",
		strings.Join(parts, " UNION ALL "), ") parts ORDER BY updated DESC, id DESC LIMIT ",
		q.Size()+1, ") SELECT ", recordColumns, " FROM page CROSS JOIN sessions s ",
		"WHERE s.owner = $1 AND s.id = page.of ORDER BY s.updated DESC, s.id DESC")
	parsed := make(parsedKeys)
	for rows := range tx.rows(text, args...) {
		r, err := scanRecord(rows, parsed)
		found = append(found, entry{r, err})
	}
	return found
}

// agents returns the keys of those agents of the owner that a query matches.
func (tx *transaction) agents(a sessionstore.Agent) (keys []int64) {
	if a.Validate() != nil {
		return nil
	}
	return column[int64](tx.rows("SELECT key FROM agents WHERE owner = $1 AND "+
		"($2 = '' OR kind = $2 AND profile = $3)", a.Kind, a.Profile))
}

// agent returns the key of an agent of the owner, or 0.
func (tx *transaction) agent(a sessionstore.Agent) (key int64) {
	if a.Validate() == nil {
		tx.row([]any{&key}, "SELECT key FROM agents "+
			"WHERE owner = $1 AND kind = $2 AND profile = $3", a.Kind, a.Profile)
	}
	return key
}

// listing is which lists show a session.
type listing int64

// The listings, as they are stored.
const (
	ordinaryList listing = iota
	archivedList
	unusedList
)

// listRange is a part of a list that is in its order in an index: the sessions of an agent with a
// listing, whose keys have certain values.
type listRange struct {
	agent   int64
	listing listing
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
		return []listRange{{listing: archivedList}}
	}
	unused := listRange{listing: unusedList, since: millis(q.Unused.Before)}
	all := []listRange{{listing: ordinaryList}, unused}
	if q.Archive == sessionstore.ArchivedToo {
		all = append(all, listRange{listing: archivedList})
	}
	var keep []sessionstore.ID
	for _, id := range q.Unused.Keep {
		if id.Validate() == nil {
			keep = append(keep, id)
		}
	}
	if unused.since != 0 && len(keep) > 0 {
		all = append(all, listRange{listing: unusedList, keep: keep})
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

// rangeQuery returns a query for the first positions in a range after $2 and $3, and adds its
// arguments to those of the query that it is a part of.
func (tx *transaction) rangeQuery(r listRange, limit int, args *[]any) string {
	add := func(value any) string {
		*args = append(*args, value)
		return fmt.Sprintf("$%d", len(*args)+1)
	}
	where, index := "agent = "+add(r.agent)+" AND listing = "+add(int64(r.listing)), "by_activity"
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
	if r.keep != nil {
		index = "by_id"
		list, ids := placeholders(r.keep, len(*args)+2)
		where, *args = where+" AND id IN ("+list+")", append(*args, ids...)
	}
	table := "sessions"
	if by := tx.db.Traits().IndexedBy; by != "" {
		table += by + index
	}
	// With a parameter as its limit PostgreSQL would plan for many rows, and sort them.
	return fmt.Sprint("SELECT * FROM (SELECT updated, id FROM ", table, " WHERE owner = $1 AND ",
		where, " AND (updated, id) < ($2, $3) ORDER BY updated DESC, id DESC LIMIT ", limit,
		") part")
}

// skipDamaged reports whether a session is left out because of its row, and logs that once. Other
// errors end the transaction.
func (tx *transaction) skipDamaged(id sessionstore.ID, err error) bool {
	if !errors.Is(err, ErrDamage) {
		must(err)
		return false
	}
	if _, again := tx.damaged.LoadOrStore(tx.owner+"\x00"+string(id), true); !again {
		tx.log.Warn("cannot list a session because its row is invalid",
			"session", string(id), "error", err)
	}
	return true
}
