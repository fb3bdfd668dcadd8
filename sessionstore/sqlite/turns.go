package sqlite

import (
	"context"
	"database/sql"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// segmentBytes limits the length of a segment with several updates, so that a history can be read in pages.
const segmentBytes = 64 << 10

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(ctx context.Context, l sessionstore.Lease, t sessionstore.Turn) error {
	prompt, states := sessionstore.Split(t.Prompt)
	return s.update(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		if err := s.interruptTurn(ctx, tx, &r); err != nil {
			return err
		}
		r.turns++
		r.open = r.last + 1
		now := s.clock()
		_, err := tx.ExecContext(ctx, "INSERT INTO turns (session, number, started) VALUES (?, ?, ?)", r.key, r.turns, now)
		if err != nil {
			return err
		}
		if err := r.add(ctx, tx, prompt, states); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE sessions SET updated = max(updated, ?), title = CASE title WHEN '' THEN ? ELSE title END
			WHERE key = ?`, now, t.Title, r.key)
		if err != nil {
			return err
		}
		return r.store(ctx, tx)
	})
}

// Append implements [sessionstore.Store].
func (s *Store) Append(ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update) error {
	history, states := sessionstore.Split(segment)
	if len(history) == 0 && len(states) == 0 {
		return s.Check(ctx, l)
	}
	return s.update(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		if err := r.add(ctx, tx, history, states); err != nil {
			return err
		}
		return r.store(ctx, tx)
	})
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(ctx context.Context, l sessionstore.Lease, reason sessionstore.StopReason) error {
	return s.update(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		if r.open == 0 {
			return nil
		}
		now := s.clock()
		_, err := tx.ExecContext(ctx, "UPDATE turns SET ended = ?, reason = ? WHERE session = ? AND number = ?",
			now, string(reason), r.key, r.turns)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE sessions SET open = 0, updated = max(updated, ?) WHERE key = ?", now, r.key)
		return err
	})
}

// interruptTurn ends a turn that was left open. The caller stores the row.
func (s *Store) interruptTurn(ctx context.Context, tx *sql.Tx, r *row) error {
	if r.open == 0 {
		return nil
	}
	r.open = 0
	now := s.clock()
	_, err := tx.ExecContext(ctx, "UPDATE turns SET ended = ? WHERE session = ? AND number = ?", now, r.key, r.turns)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE sessions SET updated = max(updated, ?) WHERE key = ?", now, r.key)
	return err
}

// add appends to the session's branch and stores states. The caller stores the row.
func (r *row) add(ctx context.Context, tx *sql.Tx, history, states []sessionstore.Update) error {
	var turn int64
	if r.open != 0 {
		turn = r.turns
	}
	for len(history) > 0 {
		body, n := pack(history)
		history = history[n:]
		r.last++
		_, err := tx.ExecContext(ctx, "INSERT INTO segments (strand, seq, turn, updates, body) VALUES (?, ?, ?, ?, ?)",
			r.branch, r.last, turn, n, body)
		if err != nil {
			return err
		}
	}
	return r.addStates(ctx, tx, states)
}

// addStates stores the latest update of each state kind.
func (r *row) addStates(ctx context.Context, tx *sql.Tx, states []sessionstore.Update) error {
	for _, u := range states {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO states (session, kind, body) VALUES (?, ?, ?)
			ON CONFLICT (session, kind) DO UPDATE SET body = excluded.body`, r.key, string(u.Kind), []byte(u.Raw))
		if err != nil {
			return err
		}
	}
	return nil
}

// pack returns the first n updates, at least one, as the body of a segment.
func pack(updates []sessionstore.Update) (body []byte, n int) {
	size := 0
	for n < len(updates) && (n == 0 || size+len(updates[n].Raw) < segmentBytes) {
		size += len(updates[n].Raw) + 1
		n++
	}
	body = make([]byte, 0, size)
	for i, u := range updates[:n] {
		if i > 0 {
			body = append(body, '\n')
		}
		body = append(body, u.Raw...)
	}
	return body, n
}
