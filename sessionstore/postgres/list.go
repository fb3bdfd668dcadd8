package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// The values of the column listing: which lists show a session.
const (
	ordinaryListing = iota
	archivedListing
	unusedListing
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
	err = s.read(ctx, func(tx pgx.Tx) error {
		agents, err := s.agents(ctx, tx, q.Agent)
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
func (s *Store) agents(
	ctx context.Context, tx pgx.Tx, a sessionstore.Agent,
) (keys []int64, err error) {
	if a.Validate() != nil {
		return nil, nil
	}
	rows, err := tx.Query(ctx, "SELECT key FROM agents WHERE owner = $1 "+
		"AND ($2 = '' OR kind = $2 AND profile = $3)", s.owner, a.Kind, a.Profile)
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
	var roots []string // conditions of which one must hold
	either := func(name, hash, spelling, real string) {
		var both []string
		for _, r := range roots {
			for _, c := range [][2]string{{name, spelling}, {"real_" + name, real}} {
				column, value := c[0], c[1]
				both = append(both, r+" AND "+column+"_hash = "+hash+"("+value+", 0)"+
					" AND "+column+" = "+value)
			}
		}
		roots = both
	}
	roots = []string{""}
	if f := q.Cwd; f != nil {
		either("cwd", "hashtextextended", args.add(f.Spelling.String())+`::text COLLATE "C"`,
			args.add(f.Real.String())+`::text COLLATE "C"`)
	}
	if f := q.Additional; f != nil {
		either("dirs", "hash_array_extended",
			args.add(dirTexts(f.Spelling.Strings()))+`::text[] COLLATE "C"`,
			args.add(realTexts(f.Real))+`::text[] COLLATE "C"`)
	}
	var ranges []string
	for _, agent := range agents {
		key := args.add(agent)
		for _, listing := range listings(q, &args) {
			for _, r := range roots {
				ranges = append(ranges, "(SELECT updated, id FROM sessions WHERE owner = "+owner+
					" AND agent = "+key+listing+r+after+order+")")
			}
		}
	}
	// OFFSET 0 makes the planner look up each session, also if it has no statistics, as after many
	// sessions were copied.
	return "SELECT " + recordColumns + " FROM (SELECT id FROM (" +
		strings.Join(ranges, " UNION ") + ") r" + order + ") page, LATERAL (" +
		"SELECT * FROM sessions WHERE owner = " + owner + " AND id = page.id OFFSET 0) s " +
		joinAgents + " ORDER BY updated DESC, s.id DESC", args
}

// listings returns conditions of which one holds for each session that q matches without regard to
// its roots.
func listings(q sessionstore.Query, args *arguments) []string {
	is := func(listing int) string { return fmt.Sprintf(" AND listing = %d", listing) }
	if q.Archive == sessionstore.OnlyArchived {
		return []string{is(archivedListing)}
	}
	all := []string{is(ordinaryListing)}
	if q.Archive == sessionstore.ArchivedToo {
		all = append(all, is(archivedListing))
	}
	if q.Unused.Before.IsZero() {
		return append(all, is(unusedListing))
	}
	before := args.add(q.Unused.Before.UnixMilli())
	all = append(all, is(unusedListing)+" AND updated >= "+before)
	var keep []string
	for _, id := range q.Unused.Keep {
		if id.Validate() == nil {
			keep = append(keep, string(id))
		}
	}
	if len(keep) > 0 {
		all = append(all, is(unusedListing)+" AND id = ANY("+args.add(keep)+")")
	}
	return all
}
