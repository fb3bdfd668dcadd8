package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

const (
	// pageSegments and pageBytes limit how much of a history is read at once.
	pageSegments = 64
	pageBytes    = 256 << 10
)

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (number int64, err error) {
	prompt, states := sessionstore.Split(t.Prompt)
	err = s.update(ctx, l, func(tx *transaction, r *row) error {
		if !t.Overlaps {
			r.interruptTurns()
		}
		r.turns++
		number = r.turns
		r.running = append(r.running, number)
		if r.open == 0 {
			r.open, r.first = r.last+1, number
		}
		r.active = true
		last, err := tx.add(r.strand, r.last, prompt)
		r.last = last
		if err == nil {
			err = tx.addStates(r.id, states)
		}
		if err == nil {
			err = tx.set(r.id, "listed = greatest(listed, 0), "+
				"title = CASE title WHEN '' THEN $3 ELSE title END",
				sessionstore.CleanTitle(t.Title))
		}
		if err != nil {
			return err
		}
		return tx.store(r)
	})
	return number, err
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(ctx context.Context, l sessionstore.Lease, number int64) error {
	return s.update(ctx, l, func(tx *transaction, r *row) error {
		i := slices.Index(r.running, number)
		if i < 0 {
			return nil
		}
		r.running = slices.Delete(r.running, i, i+1)
		if len(r.running) == 0 {
			r.open = 0
		}
		r.active = true
		if err := tx.store(r); err != nil {
			return err
		}
		_, err := tx.index(r)
		return err
	})
}

// interruptTurns ends the running turns. The caller stores the row.
func (r *row) interruptTurns() {
	if r.open != 0 {
		r.open, r.running, r.active = 0, []int64{}, true
	}
}

// Append implements [sessionstore.Store]. It is one round trip.
func (s *Store) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	history, states := sessionstore.Split(segment)
	if len(history) == 0 && len(states) == 0 || l.ID.Validate() != nil {
		return s.checkLease(ctx, l)
	}
	kinds, values := stateColumns(states)
	bodies := packed(history)
	return s.use(ctx, func(pool *pgxpool.Pool) error {
		stored := false
		batch := &pgx.Batch{}
		batch.Queue(enter, s.owner)
		batch.Queue(`
			WITH session AS (
				UPDATE sessions SET last = last + cardinality($4::bytea[])
				WHERE owner = $1 AND id = $2 AND generation = $3 RETURNING strand, last
			), added AS (
				INSERT INTO segments (owner, strand, seq, body)
				SELECT $1, strand, last - cardinality($4::bytea[]) + n, body
				FROM session, unnest($4::bytea[]) WITH ORDINALITY AS b (body, n)
			), latest AS (
				INSERT INTO states (owner, id, kind, body)
				SELECT $1, $2, kind, body FROM session, unnest($5::text[], $6::bytea[]) AS u (kind, body)
				ON CONFLICT (owner, id, kind) DO UPDATE SET body = excluded.body
			) SELECT count(*) = 1 FROM session`,
			s.owner, string(l.ID), l.Generation, bodies, kinds, values).
			QueryRow(func(row pgx.Row) error { return row.Scan(&stored) })
		if err := pool.SendBatch(ctx, batch).Close(); err != nil || stored {
			return err
		}
		err := s.checkLeaseIn(ctx, pool, l)
		if err == nil {
			err = errChanged
		}
		return err
	})
}

// checkLease returns an error unless l is the newest lease of its session.
func (s *Store) checkLease(ctx context.Context, l sessionstore.Lease) error {
	return s.use(ctx, func(pool *pgxpool.Pool) error { return s.checkLeaseIn(ctx, pool, l) })
}

// checkLeaseIn is checkLease in one round trip.
func (s *Store) checkLeaseIn(ctx context.Context, pool *pgxpool.Pool, l sessionstore.Lease) error {
	notFound := &sessionstore.NotFoundError{ID: l.ID}
	if l.ID.Validate() != nil {
		return notFound
	}
	var r row
	batch := &pgx.Batch{}
	batch.Queue(enter, s.owner)
	batch.Queue("SELECT generation FROM sessions WHERE owner = $1 AND id = $2",
		s.owner, string(l.ID)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&r.generation) })
	err := pool.SendBatch(ctx, batch).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound
	}
	return cmp.Or(err, rules.CheckLease(l, r.generation))
}

// packed returns updates as the bodies of segments.
func packed(updates []sessionstore.Update) [][]byte {
	bodies := [][]byte{}
	for len(updates) > 0 {
		body, n := sessionstore.Pack(updates)
		bodies = append(bodies, body)
		updates = updates[n:]
	}
	return bodies
}

func stateColumns(states []sessionstore.Update) (kinds []string, bodies [][]byte) {
	kinds, bodies = []string{}, [][]byte{}
	for _, u := range states {
		kinds, bodies = append(kinds, string(u.Kind)), append(bodies, u.Raw)
	}
	return kinds, bodies
}

// add appends updates to a strand, and returns the number of its last segment.
func (tx *transaction) add(strand, last int64, updates []sessionstore.Update) (int64, error) {
	bodies := packed(updates)
	if len(bodies) == 0 {
		return last, nil
	}
	err := tx.exec(`
		INSERT INTO segments (owner, strand, seq, body)
		SELECT $1, $2, $3::bigint + n, body FROM unnest($4::bytea[]) WITH ORDINALITY AS b (body, n)`,
		strand, last, bodies)
	return last + int64(len(bodies)), err
}

// addStates stores the latest update of each state kind.
func (tx *transaction) addStates(id sessionstore.ID, states []sessionstore.Update) error {
	if len(states) == 0 {
		return nil
	}
	kinds, bodies := stateColumns(states)
	return tx.exec(`
		INSERT INTO states (owner, id, kind, body)
		SELECT $1, $2, kind, body FROM unnest($3::text[], $4::bytea[]) AS u (kind, body)
		ON CONFLICT (owner, id, kind) DO UPDATE SET body = excluded.body`,
		string(id), kinds, bodies)
}

// History implements [sessionstore.Store].
func (s *Store) History(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return sessionstore.Updates(s.Segments(ctx, id, 0))
}

// Segments implements [sessionstore.Segmenter].
func (s *Store) Segments(
	ctx context.Context, id sessionstore.ID, after int64,
) iter.Seq2[sessionstore.Segment, error] {
	return s.segments(ctx, id, after, func(r *row) int64 { return r.last })
}

// Finished implements [sessionstore.Store].
func (s *Store) Finished(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return sessionstore.Updates(s.segments(ctx, id, 0, func(r *row) int64 {
		last, _ := r.finished()
		return last
	}))
}

// segments yields the segments of a history whose numbers are greater than after, up to that which
// last returns.
func (s *Store) segments(
	ctx context.Context, id sessionstore.ID, after int64, last func(*row) int64,
) iter.Seq2[sessionstore.Segment, error] {
	return func(yield func(sessionstore.Segment, error) bool) {
		var strand, end int64
		err := s.read(ctx, func(tx *transaction) error {
			r, err := tx.find(id, unlocked)
			if err == nil {
				strand, end = r.strand, last(r)
			}
			return err
		})
		for seq := after; err == nil && seq < end; {
			var page [][]byte
			if page, err = s.page(ctx, id, strand, seq, end); err != nil {
				break
			}
			for _, body := range page {
				seq++
				if !yield(sessionstore.Segment{Number: seq, Body: body}, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(sessionstore.Segment{}, err)
		}
	}
}

// page returns the segments of a session's strand after seq, up to end. There is at least one,
// unless the session was deleted.
func (s *Store) page(
	ctx context.Context, id sessionstore.ID, strand, seq, end int64,
) (page [][]byte, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		page = nil
		r, err := tx.find(id, unlocked)
		if err == nil && r.strand != strand {
			err = &sessionstore.NotFoundError{ID: id} // another session has the id
		}
		if err != nil {
			return err
		}
		rows, err := tx.query(`
			SELECT body FROM segments WHERE owner = $1 AND strand = $2 AND seq > $3 AND seq <= $4
			ORDER BY seq LIMIT $5`, strand, seq, end, pageSegments)
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < pageBytes && rows.Next(); {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			page = append(page, body)
			size += len(body)
		}
		if rows.Close(); rows.Err() == nil && len(page) == 0 {
			return errMissingPart
		}
		return rows.Err()
	})
	return page, err
}

// States implements [sessionstore.Store].
func (s *Store) States(
	ctx context.Context, id sessionstore.ID,
) (states []sessionstore.Update, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		if _, err := tx.find(id, unlocked); err != nil {
			return err
		}
		rows, err := tx.query("SELECT kind, body FROM states WHERE owner = $1 AND id = $2",
			string(id))
		if err != nil {
			return err
		}
		bodies := make(map[sessionstore.Kind][]byte)
		var (
			kind sessionstore.Kind
			body []byte
		)
		_, err = pgx.ForEachRow(rows, []any{(*string)(&kind), &body}, func() error {
			bodies[kind], body = body, nil
			return nil
		})
		states = rules.States(bodies)
		return err
	})
	return states, err
}

// draft is a [sessionstore.Draft]: a strand that does not belong to a session yet.
type draft struct {
	rules.Draft
	store *Store
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d := &draft{Draft: rules.Draft{ID: id}, store: s}
	err := s.write(ctx, func(tx *transaction) error {
		err := tx.deleteDrafts("started < "+now+" - $2::bigint", rules.MaxDraftAge.Milliseconds())
		if err == nil && id != "" {
			_, err = tx.find(id, shared) // until the draft is there to be deleted with it
		}
		if err != nil {
			return err
		}
		return tx.row("INSERT INTO drafts (owner, strand, id, started) "+
			"VALUES ($1, nextval('generations'), $2, "+now+") RETURNING strand",
			string(id)).Scan(&d.Strand)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// deleteDrafts deletes the owner's drafts that match a condition on $2.
func (tx *transaction) deleteDrafts(condition string, value any) error {
	return tx.exec(`
		WITH gone AS (DELETE FROM drafts WHERE owner = $1 AND `+condition+` RETURNING strand)
		DELETE FROM segments WHERE owner = $1 AND strand IN (SELECT strand FROM gone)`, value)
}

// Append implements [sessionstore.Draft].
func (d *draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	return d.Draft.Append(segment, func(history []sessionstore.Update) (last int64, err error) {
		err = d.store.write(ctx, func(tx *transaction) error {
			err := d.lock(tx)
			if err == nil {
				last, err = tx.add(d.Strand, d.Last, history)
			}
			return err
		})
		return last, err
	})
}

// Discard implements [sessionstore.Draft].
func (d *draft) Discard(ctx context.Context) error {
	return d.store.write(ctx, func(tx *transaction) error {
		return tx.deleteDrafts("strand = $2", d.Strand)
	})
}

// lock locks the draft. It returns an error if the draft was used, discarded or deleted.
func (d *draft) lock(tx *transaction) error {
	err := tx.row("SELECT strand FROM drafts WHERE owner = $1 AND strand = $2 FOR UPDATE",
		d.Strand).Scan(new(int64))
	if errors.Is(err, pgx.ErrNoRows) {
		return sessionstore.ErrDraft
	}
	return err
}

// draftOf returns the draft d of a session as this package's type, or nil if d is nil.
func (s *Store) draftOf(id sessionstore.ID, d sessionstore.Draft) (*draft, error) {
	if d == nil {
		return nil, nil
	}
	own, ok := d.(*draft)
	if !ok || own.store.database != s.database || own.store.owner != s.owner || own.ID != id {
		return nil, sessionstore.ErrDraft
	}
	return own, nil
}

// appendTo adds the draft to the end of the session's history. The caller stores the row.
func (d *draft) appendTo(tx *transaction, r *row) error {
	if err := d.lock(tx); err != nil {
		return err
	}
	err := tx.exec(`UPDATE segments SET strand = $2, seq = seq + $3
		WHERE owner = $1 AND strand = $4`, r.strand, r.last, d.Strand)
	if err == nil {
		err = tx.exec("DELETE FROM drafts WHERE owner = $1 AND strand = $2", d.Strand)
	}
	if err != nil {
		return err
	}
	r.last += d.Last
	return tx.addStates(r.id, d.States())
}
