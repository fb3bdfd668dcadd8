package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Restore implements [sessionstore.Restorer].
func (s *Store) Restore(
	ctx context.Context, n sessionstore.Session, history sessionstore.Draft,
	charges []sessionstore.Charge,
) (stored bool, err error) {
	if err := cmp.Or(n.Validate(), sessionstore.ValidateCharges(charges)); err != nil {
		return false, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *transaction) error {
		stored = false
		agent, err := s.owner.agentKey(tx, n.Agent)
		if err != nil {
			return err
		}
		same, err := oneStanding(tx, "id = ?", string(s.owner.storedID(n.ID)))
		if err != nil {
			return err
		}
		holder, err := oneStanding(tx, "runtime_keys.agent = ? AND name = ?", agent, n.StateKey)
		if err != nil || !rules.Restores(n.Updated, same.rules(), holder.rules()) {
			return err
		}
		if same != nil {
			if err := deleteRows(tx, same.row); err != nil {
				return err
			}
		}
		stored = true
		return s.restore(tx, n, own, charges)
	})
	s.eraseSoon()
	return stored && err == nil, err
}

// Deleted implements [sessionstore.Restorer].
func (s *Store) Deleted(
	ctx context.Context,
) (all map[sessionstore.Agent][]sessionstore.Deleted, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		all = make(map[sessionstore.Agent][]sessionstore.Deleted)
		agents, err := s.owner.agents(tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		return tx.each(`SELECT agent, name, deleted FROM tombstones
			WHERE agent IN (SELECT value FROM json_each(?)) ORDER BY name`,
			[]any{asJSON(slices.Collect(maps.Keys(agents)))}, func(rows *sql.Rows) error {
				var (
					agent, at int64
					name      sql.RawBytes
				)
				if err := rows.Scan(&agent, &name, &at); err != nil {
					return err
				}
				d := sessionstore.Deleted{At: rules.Time(at)}
				copy(d.Name[:], name)
				all[agents[agent]] = append(all[agents[agent]], d)
				return nil
			})
	})
	return all, err
}

// RestoreDeleted implements [sessionstore.Restorer].
func (s *Store) RestoreDeleted(
	ctx context.Context, agent sessionstore.Agent, deleted []sessionstore.Deleted,
) error {
	if err := agent.Validate(); err != nil {
		return err
	}
	defer s.eraseSoon()
	return s.write(ctx, func(tx *transaction) error {
		key, err := s.owner.agentKey(tx, agent)
		if err != nil {
			return err
		}
		sessions, err := standings(tx, "runtime_keys.agent = ?", key)
		holders := make([]rules.Holder, len(sessions))
		for i, s := range sessions {
			holders[i] = rules.Holder{Name: rules.Tombstone(s.name), Standing: s.Standing}
		}
		remove, tombstones := rules.Bury(deleted, holders)
		for _, i := range remove {
			if err == nil {
				err = deleteRows(tx, sessions[i].row)
			}
		}
		for _, d := range tombstones {
			if err == nil {
				err = tx.exec(`INSERT INTO tombstones (agent, name, deleted) VALUES (?, ?, ?)
					ON CONFLICT (agent, name) DO UPDATE SET deleted = max(deleted, excluded.deleted)`,
					key, d.Name[:], d.At.UnixMilli())
			}
		}
		return err
	})
}

// oneStanding returns the session that matches a condition, or nil.
func oneStanding(tx *transaction, condition string, args ...any) (*standing, error) {
	found, err := standings(tx, condition, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// rules returns what decides about s, or nil.
func (s *standing) rules() *rules.Standing {
	if s == nil {
		return nil
	}
	return &s.Standing
}

// restore stores a session that the owner does not have.
func (s *Store) restore(
	tx *transaction, n sessionstore.Session, history *draft,
	charges []sessionstore.Charge,
) error {
	_, key, err := s.insert(tx, sessionstore.NewSession{
		ID: n.ID, Agent: n.Agent, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, n.Updated.UnixMilli())
	if err == nil && history != nil {
		var r row
		if r, err = s.owner.find(tx, n.ID); err == nil {
			err = history.appendTo(tx, &r)
		}
	}
	if err == nil {
		err = tx.exec("UPDATE sessions SET created = ?, turns = ? WHERE key = ?",
			n.Created.UnixMilli(), n.Turns, key)
	}
	if listed := rules.Listed(n); err == nil && listed != 0 {
		err = tx.exec("UPDATE runtime_keys SET imported = 1, listed = ? WHERE session = ?",
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
			err = setLabel(tx, key, column, value)
		}
	}
	if err == nil {
		err = addCharges(tx, key, s.clock(), charges)
	}
	return err
}
