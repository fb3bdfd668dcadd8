package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// draftAge is how old a draft gets before another takes it for one whose process died.
const draftAge = 24 * time.Hour

// draft is a strand that no session has yet. Its states are few, and wait here.
type draft struct {
	store  *Store
	id     sessionstore.ID
	strand int64
	last   int64
	states map[sessionstore.Kind]sessionstore.Update
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d := &draft{store: s, id: id, states: map[sessionstore.Kind]sessionstore.Update{}}
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if err := s.dropOldDrafts(ctx, tx); err != nil {
			return err
		}
		r, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		if d.strand, err = nextGeneration(ctx, tx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO drafts (strand, session, started) VALUES (?, ?, ?)", d.strand, r.key, s.clock())
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// dropOldDrafts drops the drafts of processes that died.
func (s *Store) dropOldDrafts(ctx context.Context, tx *sql.Tx) error {
	return dropDrafts(ctx, tx, "started < ?", s.clock()-draftAge.Milliseconds())
}

// dropDrafts drops the drafts that match a condition, with their segments.
func dropDrafts(ctx context.Context, tx *sql.Tx, condition string, value int64) error {
	for _, statement := range []string{
		"DELETE FROM segments WHERE strand IN (SELECT strand FROM drafts WHERE " + condition + ")",
		"DELETE FROM drafts WHERE " + condition,
	} {
		if _, err := tx.ExecContext(ctx, statement, value); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [sessionstore.Draft].
func (d *draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	history, states := sessionstore.Split(segment)
	var last int64
	err := d.store.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := d.check(ctx, tx); err != nil {
			return err
		}
		r := row{strand: d.strand, last: d.last}
		err := r.add(ctx, tx, history, nil)
		last = r.last
		return err
	})
	if err != nil {
		return err
	}
	d.last = last
	for _, u := range states {
		d.states[u.Kind] = u
	}
	return nil
}

// Discard implements [sessionstore.Draft].
func (d *draft) Discard(ctx context.Context) error {
	return d.store.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return dropDrafts(ctx, tx, "strand = ?", d.strand)
	})
}

// check returns an error unless the draft is still one.
func (d *draft) check(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM drafts WHERE strand = ?", d.strand).Scan(new(int))
	if errors.Is(err, sql.ErrNoRows) {
		return &sessionstore.DraftError{ID: d.id}
	}
	return err
}

// drafted is the draft that an activation was given, nil for none.
func (s *Store) drafted(id sessionstore.ID, d sessionstore.Draft) (*draft, error) {
	if d == nil {
		return nil, nil
	}
	own, ok := d.(*draft)
	if !ok || own.store != s || own.id != id {
		return nil, &sessionstore.DraftError{ID: id}
	}
	return own, nil
}

// replace drops the session's history and gives it the draft's strand. The caller stores the row.
func (d *draft) replace(ctx context.Context, tx *sql.Tx, r *row) error {
	if err := d.check(ctx, tx); err != nil {
		return err
	}
	old, err := inherited(ctx, tx, r.key)
	if err != nil {
		return err
	}
	for statement, key := range map[string]int64{
		"DELETE FROM inherits WHERE session = ?": r.key,
		"DELETE FROM drafts WHERE strand = ?":    d.strand,
	} {
		if _, err := tx.ExecContext(ctx, statement, key); err != nil {
			return err
		}
	}
	old = append(old, span{strand: r.strand})
	r.strand, r.last = d.strand, d.last
	if err := r.store(ctx, tx); err != nil {
		return err
	}
	if err := release(ctx, tx, old); err != nil {
		return err
	}
	return r.keepStates(ctx, tx, slices.Collect(maps.Values(d.states)))
}
