package core

import (
	"cmp"
	"context"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Restore implements [sessionstore.Store].
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
		same, err := tx.one("id = $2", string(n.ID))
		if err != nil {
			return err
		}
		holder, err := tx.one("agent = $2 AND name = $3", agent, tombstone(n.StateKey))
		if err != nil || !restores(n.Updated, same, holder) {
			return err
		}
		if same != nil {
			if err := tx.deleteRows(same); err != nil {
				return err
			}
		}
		stored = true
		return tx.restore(agent, n, own, charges)
	})
	s.purgeSoon()
	return stored && err == nil, err
}

// restore stores a session that the owner does not have. The caller has locked the agent.
func (tx *transaction) restore(
	agent int64, n sessionstore.Session, history *draft, charges []sessionstore.Charge,
) error {
	r, err := tx.insert(agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, n.Updated.UnixMilli())
	if err == nil && history != nil {
		err = history.appendTo(tx, r)
	}
	if err == nil {
		err = tx.addCharges(r, charges)
	}
	if err != nil {
		return err
	}
	listed := toListed(n)
	r.turns, r.archived, r.imported = n.Turns, n.Archived, listed != 0
	return tx.store(r, ", created = $11, archived = $12, renamed = $13, meta = $14, "+
		"imported = $15, listed = $16", n.Created.UnixMilli(), n.Archived, n.Renamed, append([]byte{}, n.Meta...),
		r.imported, listed)
}

// Deleted implements [sessionstore.Store].
func (s *Store) Deleted(
	ctx context.Context,
) (all map[sessionstore.Agent][]sessionstore.Deleted, err error) {
	err = s.list(ctx, func(tx *transaction) error {
		all = make(map[sessionstore.Agent][]sessionstore.Deleted)
		var (
			agent sessionstore.Agent
			name  []byte
			at    int64
		)
		return tx.each([]any{&agent.Kind, &agent.Profile, &name, &at}, func() error {
			d := sessionstore.Deleted{At: toTime(at)}
			copy(d.Name[:], name)
			all[agent] = append(all[agent], d)
			return nil
		}, "SELECT kind, profile, name, deleted FROM tombstones t "+
			"JOIN agents a ON a.key = t.agent AND a.owner = t.owner "+
			"WHERE t.owner = $1 ORDER BY name")
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
	err := s.write(ctx, func(tx *transaction) error {
		key, err := tx.agentKey(agent, true)
		if err != nil {
			return err
		}
		var holders []*row
		for _, d := range deleted {
			if err == nil {
				var some []*row
				some, err = tx.all("agent = $2 AND name = $3"+tx.forWrite(), key, d.Name[:])
				holders = append(holders, some...)
			}
		}
		remove, tombstones := bury(deleted, holders)
		for _, h := range remove {
			if err == nil {
				err = tx.deleteRows(h)
			}
		}
		if err != nil {
			return err
		}
		each := make([][]any, len(tombstones))
		for i, d := range tombstones {
			each[i] = tx.args([]any{key, d.Name[:], d.At.UnixMilli()})
		}
		return tx.ExecEach(`
			INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, $3, $4)
			ON CONFLICT (owner, agent, name) DO UPDATE SET deleted =
				CASE WHEN tombstones.deleted > excluded.deleted THEN tombstones.deleted
				ELSE excluded.deleted END`, each)
	})
	s.purgeSoon()
	return err
}
