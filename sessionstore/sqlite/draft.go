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

// maxDraftAge is the age at which a draft is deleted, because its process has probably died.
const maxDraftAge = 24 * time.Hour

// draft is a [sessionstore.Draft]: a strand that does not belong to a session yet. Its states are
// kept in memory, because they are few.
type draft struct {
	store  *Store
	id     sessionstore.ID
	strand int64
	last   int64 // the number of its last segment
	states map[sessionstore.Kind]sessionstore.Update
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d := &draft{store: s, id: id, states: map[sessionstore.Kind]sessionstore.Update{}}
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if err := s.deleteOldDrafts(ctx, tx); err != nil {
			return err
		}
		var r row
		if id != "" {
			if r, err = s.owner.find(ctx, tx, id); err != nil {
				return err
			}
		}
		if d.strand, err = nextGeneration(ctx, tx); err != nil {
			return err
		}
		return exec(ctx, tx, "INSERT INTO drafts (strand, session, started) VALUES (?, ?, ?)",
			d.strand, r.key, s.clock())
	})
	if err != nil {
		return nil, err
	}
	s.eraseSoon()
	return d, nil
}

// deleteOldDrafts deletes the drafts of processes that died.
func (s *medium) deleteOldDrafts(ctx context.Context, tx *sql.Tx) error {
	return deleteDrafts(ctx, tx, "started < ?", s.clock()-maxDraftAge.Milliseconds())
}

// deleteDrafts deletes the drafts that match a condition, and drops their strands.
func deleteDrafts(ctx context.Context, tx *sql.Tx, condition string, value int64) error {
	for _, statement := range []string{
		"INSERT OR IGNORE INTO dropped (strand) SELECT strand FROM drafts WHERE " + condition,
		"DELETE FROM drafts WHERE " + condition,
	} {
		if err := exec(ctx, tx, statement, value); err != nil {
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
		if err := d.checkExists(ctx, tx); err != nil {
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
	err := d.store.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return deleteDrafts(ctx, tx, "strand = ?", d.strand)
	})
	d.store.eraseSoon()
	return err
}

// checkExists returns an error if the draft was used, discarded or deleted.
func (d *draft) checkExists(ctx context.Context, tx *sql.Tx) error {
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM drafts WHERE strand = ?", d.strand).Scan(new(int))
	if errors.Is(err, sql.ErrNoRows) {
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
	if !ok || own.store.medium != s.medium || own.store.owner != s.owner || own.id != id {
		return nil, sessionstore.ErrDraft
	}
	return own, nil
}

// replaceHistory drops the session's history and gives it the draft's strand. The caller stores the
// row.
func (d *draft) replaceHistory(ctx context.Context, tx *sql.Tx, r *row) error {
	if err := d.checkExists(ctx, tx); err != nil {
		return err
	}
	old, err := inheritedSpans(ctx, tx, r.key)
	if err != nil {
		return err
	}
	for statement, key := range map[string]int64{
		"DELETE FROM inherits WHERE session = ?": r.key,
		"DELETE FROM drafts WHERE strand = ?":    d.strand,
	} {
		if err := exec(ctx, tx, statement, key); err != nil {
			return err
		}
	}
	old = append(old, span{strand: r.strand})
	r.strand, r.last = d.strand, d.last
	if err := r.store(ctx, tx); err != nil {
		return err
	}
	if err := dropSpans(ctx, tx, old); err != nil {
		return err
	}
	return r.addStates(ctx, tx, slices.Collect(maps.Values(d.states)))
}
