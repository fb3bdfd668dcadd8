package sqlite

import (
	"context"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (number int64, err error) {
	prompt, states := sessionstore.Split(t.Prompt)
	err = s.update(ctx, l, func(tx *transaction, r row) error {
		if !t.Overlaps {
			if err := s.interruptTurns(tx, &r); err != nil {
				return err
			}
		}
		r.turns++
		number = r.turns
		if r.open == 0 {
			r.open = r.last + 1
		}
		now := s.clock()
		err := tx.exec("INSERT INTO turns (session, number, started) VALUES (?, ?, ?)",
			r.key, r.turns, now)
		if err != nil {
			return err
		}
		if err := r.add(tx, prompt, states); err != nil {
			return err
		}
		r.updated = rules.Active(r.updated, now)
		err = tx.exec("UPDATE sessions SET title = ? WHERE key = ? AND title = ''",
			sessionstore.CleanTitle(t.Title), r.key)
		if err != nil {
			return err
		}
		return r.store(tx)
	})
	return number, err
}

// Append implements [sessionstore.Store].
func (s *Store) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	history, states := sessionstore.Split(segment)
	if len(history) == 0 && len(states) == 0 {
		return s.check(ctx, l)
	}
	return s.update(ctx, l, func(tx *transaction, r row) error {
		if err := r.add(tx, history, states); err != nil || len(history) == 0 {
			return err
		}
		return r.store(tx)
	})
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(ctx context.Context, l sessionstore.Lease, number int64) error {
	return s.update(ctx, l, func(tx *transaction, r row) error {
		if r.open == 0 {
			return nil
		}
		first, err := r.firstRunning(tx)
		if err != nil {
			return err
		}
		n, err := tx.change("DELETE FROM turns WHERE session = ? AND number = ?", r.key, number)
		if err != nil || n == 0 {
			return err
		}
		err = tx.exec(`
			UPDATE sessions SET updated = ?1, open = CASE
				WHEN EXISTS (SELECT 1 FROM turns
					WHERE session = ?2 AND number >= ?3) THEN open ELSE 0 END
			WHERE key = ?2`, rules.Active(r.updated, s.clock()), r.key, first)
		if err == nil {
			_, err = index(tx, r.strand)
		}
		return err
	})
}

// firstRunning returns the number of the first turn in the series of overlapping turns that is
// still running. The history of that series begins with the segment r.open.
func (r row) firstRunning(tx *transaction) (number int64, err error) {
	err = tx.row(`
		SELECT coalesce((SELECT turn FROM segments WHERE strand = ? AND seq = ?),
			(SELECT min(number) FROM turns WHERE session = ?), ?)`,
		r.strand, r.open, r.key, r.turns).Scan(&number)
	return number, err
}

// interruptTurns ends the turns that were left open. The caller stores the row.
func (s *medium) interruptTurns(tx *transaction, r *row) error {
	if r.open == 0 {
		return nil
	}
	first, err := r.firstRunning(tx)
	if err != nil {
		return err
	}
	r.open, r.updated = 0, rules.Active(r.updated, s.clock())
	return tx.exec("DELETE FROM turns WHERE session = ? AND number >= ?", r.key, first)
}

// add appends to the session's strand and stores states. The caller stores the row.
func (r *row) add(tx *transaction, history, states []sessionstore.Update) error {
	var turn int64
	if r.open != 0 {
		turn = r.turns
	}
	for len(history) > 0 {
		body, n := sessionstore.Pack(history)
		history = history[n:]
		r.last++
		err := tx.exec(
			"INSERT INTO segments (strand, seq, turn, updates, body) VALUES (?, ?, ?, ?, ?)",
			r.strand, r.last, turn, n, body)
		if err != nil {
			return err
		}
	}
	return r.addStates(tx, states)
}

// addStates stores the latest update of each state kind.
func (r *row) addStates(tx *transaction, states []sessionstore.Update) error {
	for _, u := range states {
		err := tx.exec(`
			INSERT INTO states (session, kind, body) VALUES (?, ?, ?)
			ON CONFLICT (session, kind) DO UPDATE SET body = excluded.body`,
			r.key, string(u.Kind), []byte(u.Raw))
		if err != nil {
			return err
		}
	}
	return nil
}
