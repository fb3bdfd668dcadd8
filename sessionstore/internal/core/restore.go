package core

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Restore implements [sessionstore.Store].
func (s *Store) Restore(
	ctx context.Context, n sessionstore.Session, history sessionstore.Draft,
	charges []sessionstore.Charge,
) (stored bool, err error) {
	if err := errors.Join(n.Validate(), sessionstore.ValidateCharges(charges)); err != nil {
		return false, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return false, err
	}
	defer s.purgeSoon()
	return transact(ctx, s, Write, func(tx *transaction) bool {
		agent := tx.addAgent(n.Agent, true)
		same := tx.lock(n.ID)
		holder := tx.named(agent, tombstone(n.StateKey))
		if !restores(n.Updated, same, holder) {
			return false
		}
		if same != nil {
			tx.deleteRows(same)
		}
		r := tx.insert(agent, n, n.Updated.UnixMilli())
		tx.saveState(r, n.State, n.StateKey)
		own.appendTo(tx, r)
		tx.addCharges(r, charges)
		r.created, r.turns, r.meta = n.Created.UnixMilli(), n.Turns, n.Meta
		r.archived, r.renamed = n.Archived, n.Renamed
		r.listed, r.gone = millis(n.Listed), n.Gone
		r.imported = r.listed != 0
		tx.store(r)
		return true
	})
}

// Deleted implements [sessionstore.Store].
func (s *Store) Deleted(ctx context.Context) (map[sessionstore.Agent][][]byte, error) {
	return transact(ctx, s, List, func(tx *transaction) map[sessionstore.Agent][][]byte {
		all := make(map[sessionstore.Agent][][]byte)
		for rows := range tx.rows("SELECT kind, profile, name FROM tombstones t " +
			"JOIN agents a ON a.key = t.agent AND a.owner = t.owner " +
			"WHERE t.owner = $1 ORDER BY deleted, name") {
			var (
				agent sessionstore.Agent
				name  []byte
			)
			must(rows.Scan(&agent.Kind, &agent.Profile, &name))
			all[agent] = append(all[agent], name)
		}
		return all
	})
}

// RestoreDeleted implements [sessionstore.Store].
func (s *Store) RestoreDeleted(
	ctx context.Context, agent sessionstore.Agent, names [][]byte,
) error {
	if err := agent.Validate(); err != nil {
		return err
	}
	defer s.purgeSoon()
	return s.change(ctx, func(tx *transaction) {
		key := tx.addAgent(agent, true)
		var each [][]any
		for _, name := range names {
			holder := tx.named(key, name)
			if holder != nil && holder.untouched() {
				tx.deleteRows(holder)
				holder = nil
			}
			if holder == nil {
				each = append(each, []any{key, name, tx.now()})
			}
		}
		tx.execEach("INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, $3, $4) "+
			"ON CONFLICT (owner, agent, name) DO NOTHING", each)
	})
}
