package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// draft is a [sessionstore.Draft]: a strand that does not belong to a session yet.
type draft struct {
	rules.Draft
	store *Store
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d := &draft{Draft: rules.Draft{ID: id}, store: s}
	err := s.write(ctx, func(tx *transaction) (err error) {
		if err := s.deleteOldDrafts(tx); err != nil {
			return err
		}
		var r row
		if id != "" {
			if r, err = s.owner.find(tx, id); err != nil {
				return err
			}
		}
		if d.Strand, err = nextGeneration(tx); err != nil {
			return err
		}
		return tx.exec("INSERT INTO drafts (strand, session, started) VALUES (?, ?, ?)",
			d.Strand, r.key, s.clock())
	})
	if err != nil {
		return nil, err
	}
	s.eraseSoon()
	return d, nil
}

// deleteOldDrafts deletes the drafts of processes that died.
func (s *medium) deleteOldDrafts(tx *transaction) error {
	return deleteDrafts(tx, "started < ?", s.clock()-rules.MaxDraftAge.Milliseconds())
}

// deleteDrafts deletes the drafts that match a condition, and drops their strands.
func deleteDrafts(tx *transaction, condition string, value int64) error {
	for _, statement := range []string{
		"INSERT OR IGNORE INTO dropped (strand) SELECT strand FROM drafts WHERE " + condition,
		"DELETE FROM drafts WHERE " + condition,
	} {
		if err := tx.exec(statement, value); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [sessionstore.Draft].
func (d *draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	return d.Draft.Append(segment, func(history []sessionstore.Update) (last int64, err error) {
		err = d.store.write(ctx, func(tx *transaction) error {
			if err := d.checkExists(tx); err != nil {
				return err
			}
			r := row{strand: d.Strand, last: d.Last}
			err := r.add(tx, history, nil)
			last = r.last
			return err
		})
		return last, err
	})
}

// Discard implements [sessionstore.Draft].
func (d *draft) Discard(ctx context.Context) error {
	err := d.store.write(ctx, func(tx *transaction) error {
		return deleteDrafts(tx, "strand = ?", d.Strand)
	})
	d.store.eraseSoon()
	return err
}

// checkExists returns an error if the draft was used, discarded or deleted.
func (d *draft) checkExists(tx *transaction) error {
	err := tx.row("SELECT 1 FROM drafts WHERE strand = ?", d.Strand).Scan(new(int))
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
	if !ok || own.store.medium != s.medium || own.store.owner != s.owner || own.ID != id {
		return nil, sessionstore.ErrDraft
	}
	return own, nil
}

// appendTo adds the draft to the end of the session's history, and stores the row. A session without
// a history gets the draft's strand, so that a long draft is not copied.
func (d *draft) appendTo(tx *transaction, r *row) error {
	if err := d.checkExists(tx); err != nil {
		return err
	}
	unused := d.Strand
	if r.last == 0 {
		unused, r.strand = r.strand, d.Strand
	} else if err := tx.exec(`
		INSERT INTO segments (strand, seq, turn, updates, body)
		SELECT ?, seq + ?, 0, updates, body FROM segments WHERE strand = ?`,
		r.strand, r.last, d.Strand); err != nil {
		return err
	}
	r.last += d.Last
	if err := r.store(tx); err != nil {
		return err
	}
	if err := tx.exec("DELETE FROM drafts WHERE strand = ?", d.Strand); err != nil {
		return err
	}
	if err := dropSpans(tx, []span{{strand: unused}}); err != nil {
		return err
	}
	return r.addStates(tx, d.States())
}
