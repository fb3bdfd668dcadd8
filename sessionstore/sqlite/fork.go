package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Fork implements [sessionstore.Store]. The history is shared, not copied, so its length does
// not matter.
func (s *Store) Fork(ctx context.Context, source sessionstore.ID, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if err := n.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		from, err := find(ctx, tx, source)
		if err != nil {
			return err
		}
		n, err := withDefaults(ctx, tx, n, from)
		if err != nil {
			return err
		}
		finished := from.finished()
		spans, err := from.spans(ctx, tx, finished.last)
		if err != nil {
			return err
		}
		var key int64
		if lease, key, err = s.insert(ctx, tx, n, s.clock(), finished); err != nil {
			return err
		}
		return inherit(ctx, tx, key, from, spans, finished)
	})
	return lease, err
}

// finished is what a session has up to its last finished turn.
func (r row) finished() inheritance {
	if r.open != 0 {
		return inheritance{last: r.open - 1, turns: r.turns - 1}
	}
	return inheritance{last: r.last, turns: r.turns}
}

// withDefaults fills in the title and state of the source.
func withDefaults(ctx context.Context, tx *sql.Tx, n sessionstore.NewSession, from row) (sessionstore.NewSession, error) {
	if n.Title == "" {
		if err := tx.QueryRowContext(ctx, "SELECT title FROM sessions WHERE key = ?", from.key).Scan(&n.Title); err != nil {
			return n, err
		}
	}
	if n.State == nil {
		err := tx.QueryRowContext(ctx, "SELECT body FROM runtime_states WHERE session = ?", from.key).Scan(&n.State)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return n, err
		}
	}
	return n, nil
}

// inherit gives the session of key what hangs on its source.
func inherit(ctx context.Context, tx *sql.Tx, key int64, from row, spans []span, finished inheritance) error {
	for _, s := range spans {
		_, err := tx.ExecContext(ctx, "INSERT INTO inherits (session, last, strand) VALUES (?, ?, ?)", key, s.last, s.strand)
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO turns (session, number, started, ended, reason)
		SELECT ?, number, started, ended, reason FROM turns WHERE session = ? AND number <= ?`, key, from.key, finished.turns)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO states (session, kind, body) SELECT ?, kind, body FROM states WHERE session = ?",
		key, from.key)
	return err
}
