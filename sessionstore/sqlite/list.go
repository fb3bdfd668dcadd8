package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
	start := position{updated: math.MaxInt64}
	if paging {
		start = position{updated: from.Updated.UnixMilli(), id: string(s.owner.storedID(from.ID))}
	}
	page := sessionstore.Page{Sessions: []sessionstore.Session{}}
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := s.owner.agents(tx, q.Agent)
		if err != nil {
			return err
		}
		positions, err := s.owner.firstPositions(tx, q, agents, start)
		if err != nil {
			return err
		}
		page.Next = ""
		if size := q.Size(); len(positions) > size {
			positions = positions[:size]
			last := positions[size-1]
			page.Next = q.After(sessionstore.Position{
				Updated: rules.Time(last.updated), ID: plainID(sessionstore.ID(last.id)),
			})
		}
		page.Sessions, err = s.records(tx, positions, agents)
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
	tx *transaction, q sessionstore.Query, agents map[int64]sessionstore.Agent,
	start position,
) ([]position, error) {
	ranges := rules.Ranges(q)
	var all []position
	for agent := range agents {
		var (
			texts []string
			args  []any
		)
		for _, r := range ranges {
			text, some := o.rangeQuery(r, agent, start, q.Size()+1)
			texts, args = append(texts, "SELECT * FROM ("+text+")"), append(args, some...)
		}
		text := strings.Join(texts, " UNION ") + firstOf(q.Size()+1)
		positions, err := readPositions(tx, text, args)
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
	tx *transaction, positions []position, agents map[int64]sessionstore.Agent,
) ([]sessionstore.Session, error) {
	keys := make([]int64, len(positions))
	for i, p := range positions {
		keys[i] = p.key
	}
	found := make(map[int64]sessionstore.Session, len(positions))
	parsed := make(parsedKeys)
	err := tx.each(recordsQuery, []any{asJSON(keys)}, func(rows *sql.Rows) error {
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

// rangeQuery returns a query for positions in a range, and its arguments. It names the index, so
// that statistics cannot make SQLite choose another plan.
func (o owner) rangeQuery(r rules.Range, agent int64, start position, limit int) (string, []any) {
	where, args := "agent = ?", []any{agent}
	var columns []string
	for _, c := range r.Where {
		var value column
		switch paths := c.Value.(type) {
		case string:
			value = columnOf(paths)
		case []string:
			value = listColumn(paths)
		}
		where += " AND " + c.Column + "_hash = ? AND " + c.Column + " = ?"
		args = append(args, value.hash, value.text)
		columns = append(columns, c.Column)
	}
	where += " AND listing = ? AND (updated, id) < (?, ?)"
	args = append(args, int(r.Listing), start.updated, start.id)
	if r.Keep != nil {
		keep := make([]sessionstore.ID, len(r.Keep))
		for i, id := range r.Keep {
			keep[i] = o.storedID(id)
		}
		where += " AND id IN (SELECT CAST(unhex(value) AS TEXT) FROM json_each(?))"
		return positionsOf("sqlite_autoindex_sessions_1", where), append(args, asJSON(asHex(keep)))
	}
	index := "by_" + cmp.Or(strings.Join(columns, "_"), "activity")
	if r.Since != 0 {
		where += " AND updated >= ?"
		args = append(args, r.Since)
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

func readPositions(tx *transaction, query string, args []any) (positions []position, err error) {
	err = tx.each(query, args, func(rows *sql.Rows) error {
		var p position
		err := rows.Scan(&p.updated, &p.id, &p.key)
		positions = append(positions, p)
		return err
	})
	return positions, err
}

// Size implements [sessionstore.Sizer]. A history that forks share counts once.
func (s *Store) Size(ctx context.Context) (bytes int, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := s.owner.agents(tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		return tx.row(`
			WITH own AS MATERIALIZED (
				SELECT key, strand FROM sessions WHERE agent IN (SELECT value FROM json_each(?1))
			), strands AS (
				SELECT strand FROM own
				UNION SELECT inherits.strand FROM own JOIN inherits ON session = own.key
			) SELECT ?2 * (SELECT count(*) FROM own)
				+ (SELECT coalesce(sum(length(body)), 0) FROM strands JOIN segments USING (strand))
				+ (SELECT coalesce(sum(length(body)), 0) FROM own JOIN states ON session = own.key)
				+ (SELECT coalesce(sum(length(body)), 0)
					FROM own JOIN runtime_states ON session = own.key)`,
			asJSON(slices.Collect(maps.Keys(agents))), sessionstore.SessionBytes).Scan(&bytes)
	})
	return bytes, err
}
