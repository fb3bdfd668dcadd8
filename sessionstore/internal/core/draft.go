package core

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxDraftAge is the age at which a draft expires, because its process has probably died.
const maxDraftAge = 24 * time.Hour

// draft is a [sessionstore.Draft]: a strand of segments that does not belong to a session yet. Its
// states are few and kept in memory.
type draft struct {
	store  *Store
	id     sessionstore.ID // the session that it is for, or ""
	strand int64
	last   int64 // the number of its last segment
	states map[sessionstore.Kind]sessionstore.Update
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	strand, err := transact(ctx, s, Write, func(tx *transaction) int64 {
		session := int64(0)
		if id != "" { // locked until the draft is there to expire with it
			session = mustExist(id, tx.lock(id)).key
		}
		strand := tx.next()
		tx.exec("INSERT INTO drafts (owner, strand, session, started) "+
			"VALUES ($1, $2, $3, $4)", strand, session, tx.now())
		return strand
	})
	if err != nil {
		return nil, err
	}
	s.purgeSoon() // others may have expired
	return &draft{store: s, id: id, strand: strand,
		states: make(map[sessionstore.Kind]sessionstore.Update)}, nil
}

// draftsExpire returns the time before which a draft has begun that is expired now.
func (tx *transaction) draftsExpire() int64 { return tx.now() - maxDraftAge.Milliseconds() }

// Append implements [sessionstore.Draft].
func (d *draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	history, states := sessionstore.Split(segment)
	last, err := transact(ctx, d.store, Write, func(tx *transaction) int64 {
		d.mustLock(tx)
		tx.begins = true
		return tx.addBodies(d.strand, d.last, packed(history))
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
	defer d.store.purgeSoon()
	return d.store.change(ctx, func(tx *transaction) {
		tx.exec("UPDATE drafts SET started = 0, session = 0 "+
			"WHERE owner = $1 AND strand = $2 AND started > 0", d.strand)
	})
}

// mustLock locks the draft. It fails if the draft was used or discarded, or has expired.
func (d *draft) mustLock(tx *transaction) {
	if !tx.row([]any{new(int64)}, "SELECT strand FROM drafts WHERE owner = $1 AND strand = $2 "+
		"AND started >= $3"+tx.db.Traits().ForWrite, d.strand, max(tx.draftsExpire(), 1)) {
		must(sessionstore.ErrDraft)
	}
}

// draftOf returns the draft d of a session as this package's type, or nil if d is nil.
func (s *Store) draftOf(id sessionstore.ID, d sessionstore.Draft) (*draft, error) {
	if d == nil {
		return nil, nil
	}
	own, ok := d.(*draft)
	if !ok || own.store.shared != s.shared || own.store.owner != s.owner || own.id != id {
		return nil, sessionstore.ErrDraft
	}
	return own, nil
}

// appendTo adds the draft, if d is not nil, to the end of the session's history. A session without
// a history gets the draft's strand, so that a long draft is not moved.
func (d *draft) appendTo(tx *transaction, r *row) {
	if d == nil {
		return
	}
	d.mustLock(tx)
	tx.exec("DELETE FROM drafts WHERE owner = $1 AND strand = $2", d.strand)
	if r.last == 0 {
		r.strand = d.strand
	} else {
		tx.exec("UPDATE segments SET strand = $2, seq = seq + $3 WHERE owner = $1 AND strand = $4",
			r.strand, r.last, d.strand)
	}
	r.last += d.last
	tx.addStates(r.key, slices.Collect(maps.Values(d.states)))
}

// purgedRows is the number of rows that are purged at once.
const purgedRows = 4

// purgeSome deletes some rows of an expired draft, and reports whether there was none.
func (tx *transaction) purgeSome() (done bool) {
	var strand, session int64
	if !tx.row([]any{&strand, &session}, `
		SELECT strand, CASE started WHEN 0 THEN session ELSE 0 END FROM drafts
		WHERE owner = $1 AND started < $2 ORDER BY strand LIMIT 1`+tx.db.Traits().ForWrite,
		tx.draftsExpire()) {
		return true
	}
	// Each finds its rows in the order of an index, and deletes them by their key, without an owner
	// whose index SQLite would read instead.
	for _, from := range []struct {
		rows string
		of   int64
	}{
		{`passages WHERE key IN (SELECT key FROM passages
			WHERE owner = $1 AND strand = $2 ORDER BY seq DESC LIMIT $3) RETURNING key`, strand},
		{`segments WHERE owner = $1 AND strand = $2 AND seq IN (SELECT seq FROM segments
			WHERE owner = $1 AND strand = $2 ORDER BY seq DESC LIMIT $3) RETURNING seq`, strand},
		{`charges WHERE key IN (SELECT key FROM charges
			WHERE owner = $1 AND session = $2 ORDER BY meter DESC, unit DESC LIMIT $3)
			RETURNING key`, session},
	} {
		if tx.row([]any{new(int64)}, "DELETE FROM "+from.rows, from.of, purgedRows) {
			return false
		}
	}
	tx.exec("DELETE FROM drafts WHERE owner = $1 AND strand = $2", strand)
	return false
}
