package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// pageBytes is about the amount of history that is read at once.
const pageBytes = 256 << 10

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
	return s.segments(ctx, id, after, func(r row) int64 { return r.last })
}

// Finished implements [sessionstore.Store].
func (s *Store) Finished(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return sessionstore.Updates(s.segments(ctx, id, 0, row.lastFinished))
}

// segments yields the segments of a history whose numbers are greater than after, up to the one
// that last returns.
func (s *Store) segments(
	ctx context.Context, id sessionstore.ID, after int64, last func(row) int64,
) iter.Seq2[sessionstore.Segment, error] {
	return func(yield func(sessionstore.Segment, error) bool) {
		h, err := s.newHistoryReader(ctx, id, after, last)
		for err == nil && len(h.spans) > 0 {
			var page []sessionstore.Segment
			if page, err = h.nextPage(ctx); err != nil {
				break
			}
			for _, segment := range page {
				if !yield(segment, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(sessionstore.Segment{}, err)
		}
	}
}

// historyReader reads a history in pages. It fails if the session is deleted.
type historyReader struct {
	store  *Store
	id     sessionstore.ID
	strand int64
	spans  []span // not read to the end yet
	seq    int64  // the last segment that was read
}

func (s *Store) newHistoryReader(
	ctx context.Context, id sessionstore.ID, after int64, last func(row) int64,
) (historyReader, error) {
	h := historyReader{store: s, id: id, seq: after}
	err := s.read(ctx, func(tx *transaction) error {
		r, err := s.owner.find(tx, id)
		if err != nil {
			return err
		}
		h.strand = r.strand
		h.spans, err = r.spans(tx, last(r))
		h.spans = slices.DeleteFunc(h.spans, func(s span) bool { return s.last <= after })
		return err
	})
	return h, err
}

// nextPage reads the next segments of the first span in a separate transaction.
func (h *historyReader) nextPage(ctx context.Context) (page []sessionstore.Segment, err error) {
	err = h.store.read(ctx, func(tx *transaction) (err error) {
		page, err = h.segments(tx)
		if err == nil && len(page) == 0 {
			err = h.checkExists(tx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(page) > 0 {
		h.seq = page[len(page)-1].Number
	}
	// After a repair the last segments of a span may be missing.
	if last := h.spans[0].last; len(page) == 0 || h.seq >= last {
		h.seq = last
		h.spans = h.spans[1:]
	}
	return page, nil
}

func (h *historyReader) segments(tx *transaction) (page []sessionstore.Segment, err error) {
	current := h.spans[0]
	rows, err := tx.query(`
		SELECT seq, body FROM segments
		WHERE strand = ? AND seq > ? AND seq <= ?
			AND EXISTS (SELECT 1 FROM sessions WHERE id = ? AND strand = ?)
		ORDER BY seq`, current.strand, h.seq, current.last,
		string(h.store.owner.storedID(h.id)), h.strand)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < pageBytes && rows.Next(); {
		var segment sessionstore.Segment
		if err := rows.Scan(&segment.Number, &segment.Body); err != nil {
			return nil, err
		}
		page = append(page, segment)
		size += len(segment.Body)
	}
	return page, rows.Err()
}

// checkExists returns an error if the session was deleted.
func (h *historyReader) checkExists(tx *transaction) error {
	r, err := h.store.owner.find(tx, h.id)
	if err == nil && r.strand != h.strand {
		err = &sessionstore.NotFoundError{ID: h.id} // another session has the id
	}
	return err
}

// States implements [sessionstore.Store].
func (s *Store) States(
	ctx context.Context, id sessionstore.ID,
) (states []sessionstore.Update, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		states = nil
		r, err := s.owner.find(tx, id)
		if err != nil {
			return err
		}
		bodies := make(map[sessionstore.Kind][]byte)
		err = tx.each("SELECT kind, body FROM states WHERE session = ?", []any{r.key},
			func(rows *sql.Rows) error {
				var (
					kind sessionstore.Kind
					body []byte
				)
				err := rows.Scan((*string)(&kind), &body)
				bodies[kind] = body
				return err
			})
		states = rules.States(bodies)
		return err
	})
	return states, err
}

// span is a part of a history: the segments of a strand after those of the previous span, up to
// last.
type span struct {
	strand, last int64
}

// inheritedSpans returns the part of a session's history that it shares with the sessions it was
// forked from, in order.
func inheritedSpans(tx *transaction, session int64) (spans []span, err error) {
	err = tx.each("SELECT strand, last FROM inherits WHERE session = ? ORDER BY last",
		[]any{session}, func(rows *sql.Rows) error {
			var s span
			err := rows.Scan(&s.strand, &s.last)
			spans = append(spans, s)
			return err
		})
	return spans, err
}

// spans returns the session's history up to a segment: what it inherited, then its own strand.
func (r row) spans(tx *transaction, last int64) ([]span, error) {
	spans, err := inheritedSpans(tx, r.key)
	if err != nil {
		return nil, err
	}
	if len(spans) == 0 && last > 0 || len(spans) > 0 && spans[len(spans)-1].last < last {
		spans = append(spans, span{r.strand, last})
	}
	return spans, nil
}

// dropSpans drops the strands of spans. A strand that another session still has, or inherits from,
// keeps the segments that it needs.
func dropSpans(tx *transaction, spans []span) error {
	for _, s := range spans {
		err := tx.exec("INSERT OR IGNORE INTO dropped (strand) VALUES (?)", s.strand)
		if err != nil {
			return err
		}
	}
	return nil
}
