package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is what writes need to know of a session.
type row struct {
	key, generation, turns, open, strand, last int64
	cwd                                        string
}

func find(ctx context.Context, tx *sql.Tx, id sessionstore.ID) (r row, err error) {
	err = tx.QueryRowContext(ctx, "SELECT key, generation, turns, open, strand, last, cwd FROM sessions WHERE id = ?", string(id)).
		Scan(&r.key, &r.generation, &r.turns, &r.open, &r.strand, &r.last, &r.cwd)
	if errors.Is(err, sql.ErrNoRows) {
		err = &sessionstore.NotFoundError{ID: id}
	}
	return r, err
}

// claim finds the session of l, if l is its newest lease.
func claim(ctx context.Context, tx *sql.Tx, l sessionstore.Lease) (row, error) {
	r, err := find(ctx, tx, l.ID)
	if err == nil && r.generation != l.Generation {
		err = &sessionstore.FencedError{ID: l.ID, Held: l.Generation, Current: r.generation}
	}
	return r, err
}

// leased changes the session of l in one transaction.
func (s *Store) leased(ctx context.Context, l sessionstore.Lease, change func(context.Context, *sql.Tx, row) error) error {
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := claim(ctx, tx, l)
		if err != nil {
			return err
		}
		return change(ctx, tx, r)
	})
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.leased(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		_, err := tx.ExecContext(ctx, "UPDATE sessions SET title = ? WHERE key = ?", title, r.key)
		return err
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(ctx context.Context, l sessionstore.Lease, state []byte, key string) error {
	return s.leased(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		return s.saveState(ctx, tx, r.key, state, key)
	})
}

// Check implements [sessionstore.Store].
func (s *Store) Check(ctx context.Context, l sessionstore.Lease) error {
	return s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := claim(ctx, tx, l)
		return err
	})
}

// Activate implements [sessionstore.Store].
func (s *Store) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if err := a.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	history, err := s.drafted(id, a.History)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := find(ctx, tx, id)
		if a.Held != 0 {
			r, err = claim(ctx, tx, sessionstore.Lease{ID: id, Generation: a.Held})
		}
		if err != nil {
			return err
		}
		if a.Held == 0 || history != nil {
			if err := s.interrupt(ctx, tx, &r); err != nil {
				return err
			}
		}
		if err := rekey(ctx, tx, &r, a.Keys); err != nil {
			return err
		}
		if a.State != nil {
			if err := s.saveState(ctx, tx, r.key, a.State, a.StateKey); err != nil {
				return err
			}
		}
		if history != nil {
			if err := history.replace(ctx, tx, &r); err != nil {
				return err
			}
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return r.store(ctx, tx)
	})
	return lease, err
}

// rekey gives the session new roots and a new generation.
func rekey(ctx context.Context, tx *sql.Tx, r *row, k sessionstore.Keys) error {
	cwd, err := workspace.ParseDir(r.cwd)
	if err != nil {
		return &damageError{err}
	}
	if r.generation, err = nextGeneration(ctx, tx); err != nil {
		return err
	}
	values := append(columnsOf(k.WithCwd(cwd)).values(), r.generation, r.key)
	_, err = tx.ExecContext(ctx, `
		UPDATE sessions SET cwd = ?, dirs = ?, real_cwd = ?, real_dirs = ?,
			cwd_hash = ?, dirs_hash = ?, real_cwd_hash = ?, real_dirs_hash = ?, generation = ?
		WHERE key = ?`, values...)
	return err
}

// store writes the part of the row that turns and segments change.
func (r row) store(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE sessions SET turns = ?, open = ?, strand = ?, last = ? WHERE key = ?",
		r.turns, r.open, r.strand, r.last, r.key)
	return err
}
