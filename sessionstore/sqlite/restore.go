package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Restore implements [sessionstore.Store].
func (s *Store) Restore(
	ctx context.Context, n sessionstore.Session, history sessionstore.Draft,
) (stored bool, err error) {
	if err := n.Validate(); err != nil {
		return false, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		stored = false
		agent, err := s.owner.agentKey(ctx, tx, n.Agent)
		if err != nil {
			return err
		}
		var newer bool
		err = tx.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1 AND updated >= ?2) OR EXISTS (
				SELECT 1 FROM runtime_keys JOIN sessions ON sessions.key = session
				WHERE runtime_keys.agent = ?3 AND name = ?4 AND updated >= ?2
					AND NOT (imported AND turns = 0 AND last = 0))`,
			string(s.owner.storedID(n.ID)), n.Updated.UnixMilli(), agent, n.StateKey).Scan(&newer)
		if err != nil || newer {
			return err
		}
		old, err := s.owner.find(ctx, tx, n.ID)
		if err == nil {
			if err := countDelete(ctx, tx); err != nil {
				return err
			}
			err = deleteRows(ctx, tx, old)
		}
		if err != nil && !errors.As(err, new(*sessionstore.NotFoundError)) {
			return err
		}
		stored = true
		return s.restore(ctx, tx, n, own)
	})
	s.eraseSoon()
	return stored && err == nil, err
}

// Deleted implements [sessionstore.Store].
func (s *Store) Deleted(
	ctx context.Context,
) (all map[sessionstore.Agent][]sessionstore.Deleted, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		all = make(map[sessionstore.Agent][]sessionstore.Deleted)
		agents, err := s.owner.agents(ctx, tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		return each(ctx, tx, `SELECT agent, name, deleted FROM tombstones
			WHERE agent IN (SELECT value FROM json_each(?)) ORDER BY name`,
			[]any{asJSON(slices.Collect(maps.Keys(agents)))}, func(rows *sql.Rows) error {
				var (
					agent, at int64
					name      sql.RawBytes
				)
				if err := rows.Scan(&agent, &name, &at); err != nil {
					return err
				}
				d := sessionstore.Deleted{At: timeOf(at)}
				copy(d.Name[:], name)
				all[agents[agent]] = append(all[agents[agent]], d)
				return nil
			})
	})
	return all, err
}

// RestoreDeleted implements [sessionstore.Store].
func (s *Store) RestoreDeleted(
	ctx context.Context, agent sessionstore.Agent, deleted []sessionstore.Deleted,
) error {
	if err := agent.Validate(); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		key, err := s.owner.agentKey(ctx, tx, agent)
		for _, d := range deleted {
			if err != nil {
				return err
			}
			err = exec(ctx, tx, `INSERT INTO tombstones (agent, name, deleted) VALUES (?, ?, ?)
				ON CONFLICT (agent, name) DO UPDATE SET deleted = max(deleted, excluded.deleted)`,
				key, d.Name[:], d.At.UnixMilli())
		}
		if err != nil {
			return err
		}
		return reconcileTombstones(ctx, tx, key)
	})
}

// restore stores a session that the owner does not have.
func (s *Store) restore(
	ctx context.Context, tx *sql.Tx, n sessionstore.Session, history *draft,
) error {
	_, key, err := s.insert(ctx, tx, sessionstore.NewSession{
		ID: n.ID, Agent: n.Agent, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, n.Updated.UnixMilli())
	if err == nil && history != nil {
		var r row
		if r, err = s.owner.find(ctx, tx, n.ID); err == nil {
			err = history.replaceHistory(ctx, tx, &r)
		}
	}
	if err == nil {
		err = exec(ctx, tx, "UPDATE sessions SET created = ?, turns = ? WHERE key = ?",
			n.Created.UnixMilli(), n.Turns, key)
	}
	if listed := n.ListedColumn(); err == nil && listed != 0 {
		err = exec(ctx, tx, "UPDATE runtime_keys SET imported = 1, listed = ? WHERE session = ?",
			listed, key)
	}
	labels := map[string]any{}
	if n.Archived {
		labels["archived"] = 1
	}
	if n.Renamed {
		labels["renamed"] = 1
	}
	if len(n.Meta) > 0 {
		labels["meta"] = string(n.Meta)
	}
	for column, value := range labels {
		if err == nil {
			err = setLabel(ctx, tx, key, column, value)
		}
	}
	return err
}

// reconcileTombstones looks at an agent's sessions that have a tombstone. If a session was used, it
// deletes the tombstone, otherwise the session.
func reconcileTombstones(ctx context.Context, tx *sql.Tx, agent int64) error {
	type namesake struct {
		row
		name   string
		unused bool // it was imported, and nothing has been done with it
	}
	var all []namesake
	err := each(ctx, tx, `
		SELECT sessions.key, strand, name,
			imported AND turns = 0 AND last = 0 AND NOT coalesce(archived OR renamed, 0)
		FROM runtime_keys AS keys JOIN sessions ON sessions.key = keys.session
		LEFT JOIN labels ON labels.session = sessions.key
		WHERE keys.agent = ?1 AND EXISTS (SELECT 1 FROM tombstones WHERE agent = ?1)`,
		[]any{agent}, func(rows *sql.Rows) error {
			var n namesake
			err := rows.Scan(&n.key, &n.strand, &n.name, &n.unused)
			all = append(all, n)
			return err
		})
	if err != nil {
		return err
	}
	for _, n := range all {
		at, err := findImported(ctx, tx, agent, n.name)
		switch {
		case err != nil || at.Deleted == 0:
		case n.unused:
			err = deleteRows(ctx, tx, n.row)
		default:
			err = exec(ctx, tx, "DELETE FROM tombstones WHERE agent = ? AND name = ?", agent,
				tombstoneName(n.name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
