package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// List implements [sessionstore.Store]. A page is the start of a few index ranges, merged: one for
// each agent and each combination of the keys that the filters match by.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	from, paging, err := q.From()
	if err != nil {
		return sessionstore.Page{}, err
	}
	start := place{updated: math.MaxInt64}
	if paging {
		start = place{updated: from.Updated.UnixMilli(), id: string(from.ID)}
	}
	page := sessionstore.Page{Sessions: []sessionstore.Session{}}
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		agents, err := agentsOf(ctx, tx, q.Agent)
		if err != nil {
			return err
		}
		places, err := merge(ctx, tx, q, agents, start)
		if err != nil {
			return err
		}
		page.Next = ""
		if size := q.Size(); len(places) > size {
			places = places[:size]
			last := places[size-1]
			page.Next = q.After(sessionstore.Position{Updated: stored(last.updated), ID: sessionstore.ID(last.id)})
		}
		page.Sessions, err = records(ctx, tx, places, agents)
		return err
	})
	if err != nil {
		return sessionstore.Page{}, err
	}
	return page, nil
}

// place is where a session stands in a list.
type place struct {
	updated int64
	id      string
	key     int64
}

// compare orders places as lists do.
func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(other.updated, p.updated), strings.Compare(other.id, p.id))
}

// merge returns the first places after start of q's ranges, each session once: one more than a page.
func merge(ctx context.Context, tx *sql.Tx, q sessionstore.Query, agents map[int64]sessionstore.Agent, start place) ([]place, error) {
	var all []place
	for agent := range agents {
		for _, r := range rangesOf(q) {
			places, err := r.read(ctx, tx, agent, start, q.Size()+1)
			if err != nil {
				return nil, err
			}
			all = append(all, places...)
		}
	}
	slices.SortFunc(all, place.compare)
	all = slices.Compact(all)
	return all[:min(len(all), q.Size()+1)], nil
}

// agentsOf are the agents that a query asks for, by key.
func agentsOf(ctx context.Context, tx *sql.Tx, a sessionstore.Agent) (map[int64]sessionstore.Agent, error) {
	agents := make(map[int64]sessionstore.Agent)
	if a.Kind != "" {
		var key int64
		err := tx.QueryRowContext(ctx, "SELECT key FROM agents WHERE kind = ? AND profile = ?", a.Kind, a.Profile).Scan(&key)
		if errors.Is(err, sql.ErrNoRows) {
			return agents, nil
		}
		agents[key] = a
		return agents, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT key, kind, profile FROM agents")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key, &a.Kind, &a.Profile); err != nil {
			return nil, err
		}
		agents[key] = a
	}
	return agents, rows.Err()
}

// records reads the sessions at places, in their order.
func records(ctx context.Context, tx *sql.Tx, places []place, agents map[int64]sessionstore.Agent) ([]sessionstore.Session, error) {
	sessions := make([]sessionstore.Session, len(places))
	keys := make([]int64, len(places))
	at := make(map[int64]int, len(places))
	for i, p := range places {
		keys[i], at[p.key] = p.key, i
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, recordsQuery, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := make(knownKeys)
	for rows.Next() {
		key, agent, r, err := scanRecord(rows, known)
		if err != nil {
			return nil, err
		}
		r.Agent = agents[agent]
		sessions[at[key]] = r
	}
	return sessions, rows.Err()
}

const recordsQuery = "SELECT " + recordColumns + " FROM sessions WHERE key IN (SELECT value FROM json_each(?))"
