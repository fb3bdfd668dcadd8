package sqlite

import (
	"bytes"
	"context"
	"database/sql"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// segmentBytes is how long a stored segment may get before another is begun, so that reading has
// something to page by.
const segmentBytes = 64 << 10

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(ctx context.Context, l sessionstore.Lease, t sessionstore.Turn) error {
	prompt, err := sessionstore.Split(t.Prompt)
	if err != nil {
		return err
	}
	return s.leased(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		if err := s.interrupt(ctx, tx, &r); err != nil {
			return err
		}
		r.turns++
		r.open = r.last + 1
		now := s.clock()
		_, err := tx.ExecContext(ctx, "INSERT INTO turns (session, number, started) VALUES (?, ?, ?)", r.key, r.turns, now)
		if err != nil {
			return err
		}
		if err := r.add(ctx, tx, prompt); err != nil {
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
	parts, err := sessionstore.Split(segment)
	if err != nil {
		return err
	}
	if len(parts.History) == 0 && len(parts.States) == 0 {
		return s.Check(ctx, l)
	}
	return s.leased(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		if err := r.add(ctx, tx, parts); err != nil {
			return err
		}
		return r.store(ctx, tx)
	})
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(ctx context.Context, l sessionstore.Lease, reason sessionstore.StopReason) error {
	return s.leased(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
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

// interrupt ends a turn that was left open. The caller stores the row.
func (s *Store) interrupt(ctx context.Context, tx *sql.Tx, r *row) error {
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

// add appends to the session's strand, and stores states. The caller stores the row.
func (r *row) add(ctx context.Context, tx *sql.Tx, parts sessionstore.Parts) error {
	var turn int64
	if r.open != 0 {
		turn = r.turns
	}
	for updates := parts.History; len(updates) > 0; {
		body, n := pack(updates)
		updates = updates[n:]
		r.last++
		_, err := tx.ExecContext(ctx, "INSERT INTO segments (strand, seq, turn, updates, body) VALUES (?, ?, ?, ?, ?)",
			r.strand, r.last, turn, n, body)
		if err != nil {
			return err
		}
	}
	states := make(map[string]sessionstore.Update, len(parts.States))
	for _, state := range parts.States {
		states[state.Kind] = state.Update
	}
	return r.keepStates(ctx, tx, states)
}

// keepStates stores the latest update of each state kind.
func (r *row) keepStates(ctx context.Context, tx *sql.Tx, states map[string]sessionstore.Update) error {
	for kind, update := range states {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO states (session, kind, body) VALUES (?, ?, ?)
			ON CONFLICT (session, kind) DO UPDATE SET body = excluded.body`, r.key, kind, []byte(update))
		if err != nil {
			return err
		}
	}
	return nil
}

// pack joins the first n updates, at least one, as a segment's body.
func pack(updates []sessionstore.Update) (body []byte, n int) {
	size := 0
	for n < len(updates) && (n == 0 || size+len(updates[n]) < segmentBytes) {
		size += len(updates[n]) + 1
		n++
	}
	return bytes.Join(asBytes(updates[:n]), []byte("\n")), n
}

func asBytes(updates []sessionstore.Update) [][]byte {
	out := make([][]byte, len(updates))
	for i, u := range updates {
		out[i] = u
	}
	return out
}
