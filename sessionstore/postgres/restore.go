package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

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
		agent, err := tx.agentKey(n.Agent, true)
		if err != nil {
			return err
		}
		same, err := tx.oneStanding("id = $2", string(n.ID))
		if err != nil {
			return err
		}
		holder, err := tx.oneStanding("agent = $2 AND state_key_hash = sha256($3)",
			agent, []byte(n.StateKey))
		if err != nil || !rules.Restores(n.Updated, same.rules(), holder.rules()) {
			return err
		}
		if same != nil {
			if err := tx.deleteRows(n.ID, same.strand); err != nil {
				return err
			}
		}
		stored = true
		return tx.restore(agent, n, own, charges)
	})
	return stored && err == nil, err
}

// restore stores a session that the owner does not have. The caller has locked the agent.
func (tx *transaction) restore(
	agent int64, n sessionstore.Session, history *draft,
	charges []sessionstore.Charge,
) error {
	updated := n.Updated.UnixMilli()
	r, err := tx.insert(agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, &updated)
	if err == nil && history != nil {
		err = history.appendTo(tx, r)
	}
	if err != nil {
		return err
	}
	r.turns = n.Turns
	if err := tx.store(r); err != nil {
		return err
	}
	if err := tx.addCharges(r, charges); err != nil {
		return err
	}
	return tx.set(n.ID, "created = $3, archived = $4, renamed = $5, meta = $6, "+
		"imported = $7::bigint <> 0, listed = $7", n.Created.UnixMilli(), n.Archived, n.Renamed,
		append([]byte{}, n.Meta...), rules.Listed(n))
}

// Deleted implements [sessionstore.Restorer].
func (s *Store) Deleted(
	ctx context.Context,
) (all map[sessionstore.Agent][]sessionstore.Deleted, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		all = make(map[sessionstore.Agent][]sessionstore.Deleted)
		rows, err := tx.query(`
			SELECT kind, profile, name, deleted FROM tombstones t
			JOIN agents a ON a.owner = t.owner AND a.key = t.agent
			WHERE t.owner = $1 ORDER BY name`)
		if err != nil {
			return err
		}
		var (
			agent sessionstore.Agent
			name  []byte
			at    int64
		)
		_, err = pgx.ForEachRow(rows, []any{&agent.Kind, &agent.Profile, &name, &at}, func() error {
			d := sessionstore.Deleted{At: rules.Time(at)}
			copy(d.Name[:], name)
			all[agent] = append(all[agent], d)
			return nil
		})
		return err
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
	named := make([][]byte, len(deleted))
	for i, d := range deleted {
		named[i] = d.Name[:]
	}
	return s.write(ctx, func(tx *transaction) error {
		key, err := tx.agentKey(agent, true)
		if err != nil {
			return err
		}
		sessions, err := tx.standings("agent = $2 AND state_key_hash = ANY($3)", key, named)
		holders := make([]rules.Holder, len(sessions))
		for i, s := range sessions {
			holders[i] = rules.Holder{Name: rules.Tombstone(s.name), Standing: s.Standing}
		}
		remove, tombstones := rules.Bury(deleted, holders)
		for _, i := range remove {
			if err == nil {
				err = tx.deleteRows(sessions[i].id, sessions[i].strand)
			}
		}
		if err != nil {
			return err
		}
		names, times := [][]byte{}, []int64{}
		for _, d := range tombstones {
			names, times = append(names, d.Name[:]), append(times, d.At.UnixMilli())
		}
		return tx.exec(`
			INSERT INTO tombstones (owner, agent, name, deleted)
			SELECT $1, $2, name, deleted FROM unnest($3::bytea[], $4::bigint[]) AS d (name, deleted)
			ON CONFLICT (owner, agent, name) DO UPDATE
				SET deleted = greatest(tombstones.deleted, excluded.deleted)`, key, names, times)
	})
}
