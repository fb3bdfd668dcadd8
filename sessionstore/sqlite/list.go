package sqlite

import (
	"cmp"
	"context"
	"database/sql"
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
	from, paging, err := q.From()
	if err != nil {
		return sessionstore.Page{}, err
	}
	start := position{updated: math.MaxInt64}
	if paging {
		start = position{updated: from.Updated.UnixMilli(), id: string(s.owner.storedID(from.ID))}
	}
	page := sessionstore.Page{Sessions: []sessionstore.Session{}}
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		agents, err := s.owner.agents(ctx, tx, q.Agent)
		if err != nil {
			return err
		}
		positions, err := s.owner.firstPositions(ctx, tx, q, agents, start)
		if err != nil {
			return err
		}
		page.Next = ""
		if size := q.Size(); len(positions) > size {
			positions = positions[:size]
			last := positions[size-1]
			page.Next = q.After(sessionstore.Position{
				Updated: timeOf(last.updated), ID: plainID(sessionstore.ID(last.id)),
			})
		}
		page.Sessions, err = s.records(ctx, tx, positions, agents)
		return err
	})
	if err != nil {
		return sessionstore.Page{}, err
	}
	return page, nil
}

// position is the position of a session in a list.
type position struct {
	updated int64
	id      string
	key     int64
}

// compare orders positions like a list.
func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(other.updated, p.updated), strings.Compare(other.id, p.id))
}

// firstPositions returns the first positions of q's ranges after start, each session once: one more
// than fit in a page.
func (o owner) firstPositions(
	ctx context.Context, tx *sql.Tx, q sessionstore.Query, agents map[int64]sessionstore.Agent,
	start position,
) ([]position, error) {
	keep := q.Unused.Keep
	q.Unused.Keep = make([]sessionstore.ID, len(keep))
	for i, id := range keep {
		q.Unused.Keep[i] = o.storedID(id)
	}
	var all []position
	for agent := range agents {
		var (
			texts []string
			args  []any
		)
		for _, r := range indexRanges(q) {
			text, some := r.query(agent, start, q.Size()+1)
			texts, args = append(texts, "SELECT * FROM ("+text+")"), append(args, some...)
		}
		text := strings.Join(texts, " UNION ") + firstOf(q.Size()+1)
		positions, err := readPositions(ctx, tx, text, args)
		if err != nil {
			return nil, err
		}
		all = append(all, positions...)
	}
	slices.SortFunc(all, position.compare)
	all = slices.Compact(all)
	return all[:min(len(all), q.Size()+1)], nil
}

// records returns the sessions at positions, in their order. It leaves out those whose rows are
// damaged, so that the others are still listed.
func (s *Store) records(
	ctx context.Context, tx *sql.Tx, positions []position, agents map[int64]sessionstore.Agent,
) ([]sessionstore.Session, error) {
	keys := make([]int64, len(positions))
	for i, p := range positions {
		keys[i] = p.key
	}
	found := make(map[int64]sessionstore.Session, len(positions))
	parsed := make(parsedKeys)
	err := each(ctx, tx, recordsQuery, []any{asJSON(keys)}, func(rows *sql.Rows) error {
		key, agent, r, err := scanRecord(rows, parsed)
		r.ID = plainID(r.ID)
		if errors.As(err, new(*damageError)) {
			s.warnDamaged(key, r.ID, err)
			return nil
		}
		r.Agent = agents[agent]
		found[key] = r
		return err
	})
	sessions := make([]sessionstore.Session, 0, len(positions))
	for _, p := range positions {
		if r, ok := found[p.key]; ok {
			sessions = append(sessions, r)
		}
	}
	return sessions, err
}

// warnDamaged logs that a session is left out of lists, once.
func (s *medium) warnDamaged(key int64, id sessionstore.ID, err error) {
	if _, again := s.damaged.LoadOrStore(key, true); !again {
		s.options.Logger.Warn("cannot list a session because its row is invalid; "+
			`"acp-agent sessions repair" removes it`, "session", string(id), "error", err)
	}
}

const recordsQuery = "SELECT " + recordColumns + " FROM " + recordTables +
	" WHERE key IN (SELECT value FROM json_each(?))"

// The values of the column listing: which lists show a session.
const (
	ordinaryListing = iota
	archivedListing
	unusedListing
)

// indexRange is a part of an index: the sessions of an agent with a listing and certain values in
// some columns, in the order of a list.
type indexRange struct {
	columns []string // of cwd, real_cwd, dirs, real_dirs
	values  []column
	listing int
	since   int64 // of updated, 0 for all
	// keep, if not "", is a JSON array of ids in hexadecimal: not a range but these sessions before
	// since.
	keep string
}

// indexRanges returns the ranges whose union q's filters match. A filter matches by its spelling or
// its real path.
func indexRanges(q sessionstore.Query) []indexRange {
	ranges := listingRanges(q)
	if f := q.Cwd; f != nil {
		ranges = either(ranges, "cwd", dirColumn(f.Spelling), dirColumn(f.Real))
	}
	if f := q.Additional; f != nil {
		ranges = either(ranges, "dirs", dirsColumn(f.Spelling), realColumn(f.Real))
	}
	return ranges
}

// listingRanges returns the ranges of the sessions that q matches without regard to their roots.
func listingRanges(q sessionstore.Query) []indexRange {
	if q.Archive == sessionstore.OnlyArchived {
		return []indexRange{{listing: archivedListing}}
	}
	unused := indexRange{listing: unusedListing}
	if !q.Unused.Before.IsZero() {
		unused.since = q.Unused.Before.UnixMilli()
	}
	ranges := []indexRange{{listing: ordinaryListing}, unused}
	if q.Archive == sessionstore.ArchivedToo {
		ranges = append(ranges, indexRange{listing: archivedListing})
	}
	if unused.since != 0 && len(q.Unused.Keep) > 0 {
		unused.keep = asJSON(asHex(q.Unused.Keep))
		ranges = append(ranges, unused)
	}
	return ranges
}

// either splits each range in two: one for the column name, and one for the column of its real
// path.
func either(ranges []indexRange, name string, spelling, real column) []indexRange {
	var out []indexRange
	for _, r := range ranges {
		out = append(out, r.and(name, spelling), r.and("real_"+name, real))
	}
	return out
}

func (r indexRange) and(name string, value column) indexRange {
	r.columns = append(r.columns[:len(r.columns):len(r.columns)], name)
	r.values = append(r.values[:len(r.values):len(r.values)], value)
	return r
}

// query returns a query and its arguments. It names the index, so that statistics cannot make
// SQLite choose another plan.
func (r indexRange) query(agent int64, start position, limit int) (string, []any) {
	where, args := "agent = ?", []any{agent}
	for i, name := range r.columns {
		where += " AND " + name + "_hash = ? AND " + name + " = ?"
		args = append(args, r.values[i].hash, r.values[i].text)
	}
	where += " AND listing = ? AND (updated, id) < (?, ?)"
	args = append(args, r.listing, start.updated, start.id)
	if r.keep != "" {
		where += " AND updated < ? AND id IN (SELECT CAST(unhex(value) AS TEXT) FROM json_each(?))"
		return positionsOf("sqlite_autoindex_sessions_1", where), append(args, r.since, r.keep)
	}
	index := "by_" + strings.Join(r.columns, "_")
	if len(r.columns) == 0 {
		index = "by_activity"
	}
	if r.since != 0 {
		where += " AND updated >= ?"
		args = append(args, r.since)
	}
	return positionsOf(index, where) + firstOf(limit), args
}

// firstOf returns the end of a query for the first positions. SQLite would compile a query with a
// parameter as its limit twice.
func firstOf(limit int) string {
	return fmt.Sprint(" ORDER BY updated DESC, id DESC LIMIT ", limit)
}

func positionsOf(index, where string) string {
	return "SELECT updated, id, key FROM sessions INDEXED BY " + index + " WHERE " + where
}

func readPositions(
	ctx context.Context, tx *sql.Tx, query string, args []any,
) (positions []position, err error) {
	err = each(ctx, tx, query, args, func(rows *sql.Rows) error {
		var p position
		err := rows.Scan(&p.updated, &p.id, &p.key)
		positions = append(positions, p)
		return err
	})
	return positions, err
}
