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
	err = s.write(ctx, func(tx pgx.Tx) error {
		stored = false
		agent, err := s.agentKey(ctx, tx, n.Agent, true)
		if err != nil {
			return err
		}
		same, err := s.oneStanding(ctx, tx, "id = $2", string(n.ID))
		if err != nil {
			return err
		}
		holder, err := s.oneStanding(ctx, tx, "agent = $2 AND state_key_hash = sha256($3)",
			agent, []byte(n.StateKey))
		if err != nil || !rules.Restores(n.Updated, same.rules(), holder.rules()) {
			return err
		}
		if same != nil {
			if err := s.deleteRows(ctx, tx, n.ID, same.strand); err != nil {
				return err
			}
		}
		stored = true
		return s.restore(ctx, tx, agent, n, own, charges)
	})
	return stored && err == nil, err
}

// restore stores a session that the owner does not have. The caller has locked the agent.
func (s *Store) restore(
	ctx context.Context, tx pgx.Tx, agent int64, n sessionstore.Session, history *draft,
	charges []sessionstore.Charge,
) error {
	updated := n.Updated.UnixMilli()
	r, err := s.insert(ctx, tx, agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, &updated)
	if err == nil && history != nil {
		err = history.replaceHistory(ctx, tx, r)
	}
	if err != nil {
		return err
	}
	r.turns = n.Turns
	if err := s.store(ctx, tx, r); err != nil {
		return err
	}
	if err := s.addCharges(ctx, tx, r, charges); err != nil {
		return err
	}
	return s.exec(ctx, tx, n.ID, "created = $3, archived = $4, renamed = $5, meta = $6, "+
		"imported = $7::bigint <> 0, listed = $7", n.Created.UnixMilli(), n.Archived, n.Renamed,
		append([]byte{}, n.Meta...), rules.Listed(n))
}

// Deleted implements [sessionstore.Restorer].
func (s *Store) Deleted(
	ctx context.Context,
) (all map[sessionstore.Agent][]sessionstore.Deleted, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		all = make(map[sessionstore.Agent][]sessionstore.Deleted)
		rows, err := tx.Query(ctx, `
			SELECT kind, profile, name, deleted FROM tombstones t
			JOIN agents a ON a.owner = t.owner AND a.key = t.agent
			WHERE t.owner = $1 ORDER BY name`, s.owner)
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
	return s.write(ctx, func(tx pgx.Tx) error {
		key, err := s.agentKey(ctx, tx, agent, true)
		if err != nil {
			return err
		}
		sessions, err := s.standings(ctx, tx, "agent = $2 AND state_key_hash = ANY($3)", key, named)
		holders := make([]rules.Holder, len(sessions))
		for i, s := range sessions {
			holders[i] = rules.Holder{Name: rules.Tombstone(s.name), Standing: s.Standing}
		}
		remove, tombstones := rules.Bury(deleted, holders)
		for _, i := range remove {
			if err == nil {
				err = s.deleteRows(ctx, tx, sessions[i].id, sessions[i].strand)
			}
		}
		if err != nil {
			return err
		}
		names, times := [][]byte{}, []int64{}
		for _, d := range tombstones {
			names, times = append(names, d.Name[:]), append(times, d.At.UnixMilli())
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO tombstones (owner, agent, name, deleted)
			SELECT $1, $2, name, deleted FROM unnest($3::bytea[], $4::bigint[]) AS d (name, deleted)
			ON CONFLICT (owner, agent, name) DO UPDATE
				SET deleted = greatest(tombstones.deleted, excluded.deleted)`,
			s.owner, key, names, times)
		return err
	})
}
