package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// List implements [sessionstore.Store]. A page is the beginning of a few merged index ranges: one
// for each agent, listing and combination of spelled and real paths that the filters match.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	from, paging, err := q.From()
	if err != nil {
		return sessionstore.Page{}, err
	}
	page := sessionstore.Page{Sessions: []sessionstore.Session{}}
	if from.ID.Validate() != nil {
		return page, &sessionstore.CursorError{Cursor: q.Cursor}
	}
	updated := int64(math.MaxInt64)
	if paging {
		updated = from.Updated.UnixMilli()
	}
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := tx.agents(q.Agent)
		if err != nil || len(agents) == 0 {
			return err
		}
		text, args := s.listQuery(q, agents, updated, string(from.ID))
		// A plan for any arguments would not use the hashes.
		rows, err := tx.Query(ctx, text, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
		if err != nil {
			return err
		}
		page.Sessions, err = pgx.CollectRows(rows,
			func(row pgx.CollectableRow) (sessionstore.Session, error) { return scanRecord(row) })
		return err
	})
	if err != nil {
		return sessionstore.Page{}, err
	}
	if size := q.Size(); len(page.Sessions) > size {
		page.Sessions = page.Sessions[:size]
		last := page.Sessions[size-1]
		page.Next = q.After(sessionstore.Position{Updated: last.Updated, ID: last.ID})
	}
	return page, nil
}

// agents returns the keys of the owner's agents that a query matches.
func (tx *transaction) agents(a sessionstore.Agent) (keys []int64, err error) {
	if a.Validate() != nil {
		return nil, nil
	}
	rows, err := tx.query("SELECT key FROM agents WHERE owner = $1 "+
		"AND ($2 = '' OR kind = $2 AND profile = $3)", a.Kind, a.Profile)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// arguments are the arguments of a query that is put together.
type arguments []any

// add adds an argument and returns its placeholder.
func (a *arguments) add(value any) string {
	*a = append(*a, value)
	return fmt.Sprintf("$%d", len(*a))
}

// listQuery returns the query for one session more than fits in q's page.
func (s *Store) listQuery(
	q sessionstore.Query, agents []int64, updated int64, id string,
) (string, []any) {
	var args arguments
	owner := args.add(s.owner)
	after := " AND (updated, id) < (" + args.add(updated) + "::bigint, " + args.add(id) + ")"
	order := " ORDER BY updated DESC, id DESC LIMIT " + args.add(q.Size()+1)
	var conditions []string
	for _, r := range rules.Ranges(q) {
		conditions = append(conditions, args.conditions(r))
	}
	var ranges []string
	for _, agent := range agents {
		key := args.add(agent)
		for _, condition := range conditions {
			ranges = append(ranges, "(SELECT updated, id FROM sessions WHERE owner = "+owner+
				" AND agent = "+key+condition+after+order+")")
		}
	}
	// OFFSET 0 makes the planner look up each session, also if it has no statistics, as after many
	// sessions were copied.
	return "SELECT " + recordColumns + " FROM (SELECT id FROM (" +
		strings.Join(ranges, " UNION ") + ") r" + order + ") page, LATERAL (" +
		"SELECT * FROM sessions WHERE owner = " + owner + " AND id = page.id OFFSET 0) s " +
		joinAgents + " ORDER BY updated DESC, s.id DESC", args
}

// conditions returns the conditions of a range.
func (a *arguments) conditions(r rules.Range) string {
	all := fmt.Sprintf(" AND listing = %d", r.Listing)
	if r.Since != 0 {
		all += " AND updated >= " + a.add(r.Since)
	}
	if r.Keep != nil {
		keep := make([]string, len(r.Keep))
		for i, id := range r.Keep {
			keep[i] = string(id)
		}
		all += " AND id = ANY(" + a.add(keep) + ")"
	}
	for _, c := range r.Where {
		hash, form := "hashtextextended", "text"
		if _, list := c.Value.([]string); list {
			hash, form = "hash_array_extended", "text[]"
		}
		value := a.add(c.Value) + "::" + form + ` COLLATE "C"`
		all += " AND " + c.Column + "_hash = " + hash + "(" + value + ", 0) AND " +
			c.Column + " = " + value
	}
	return all
}

// Size implements [sessionstore.Sizer].
func (s *Store) Size(ctx context.Context) (bytes int, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		return tx.row(`
			SELECT $2 * (SELECT count(*) FROM sessions WHERE owner = $1)
				+ (SELECT coalesce(sum(octet_length(body)), 0) FROM segments WHERE owner = $1)
				+ (SELECT coalesce(sum(octet_length(body)), 0) FROM states WHERE owner = $1)
				+ (SELECT coalesce(sum(octet_length(state)), 0) FROM sessions WHERE owner = $1)`,
			sessionstore.SessionBytes).Scan(&bytes)
	})
	return bytes, err
}
