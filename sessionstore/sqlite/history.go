package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// pageBytes is about how much of a history is read at once.
const pageBytes = 256 << 10

// History implements [sessionstore.Store].
func (s *Store) History(ctx context.Context, id sessionstore.ID) iter.Seq2[sessionstore.Update, error] {
	return s.pages(ctx, id, func(r row) int64 { return r.last })
}

// Finished implements [sessionstore.Store].
func (s *Store) Finished(ctx context.Context, id sessionstore.ID) iter.Seq2[sessionstore.Update, error] {
	return s.pages(ctx, id, func(r row) int64 { return r.finished().last })
}

// pages yields a history up to a segment.
func (s *Store) pages(ctx context.Context, id sessionstore.ID, last func(row) int64) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		reader, err := s.reader(ctx, id, last)
		for err == nil && len(reader.spans) > 0 {
			var page [][]byte
			if page, err = reader.next(ctx); err != nil {
				break
			}
			for _, body := range page {
				for len(body) > 0 {
					line, rest, _ := bytes.Cut(body, []byte("\n"))
					body = rest
					if !yield(sessionstore.StoredUpdate(line[:len(line):len(line)]), nil) {
						return
					}
				}
			}
		}
		if err != nil {
			yield(sessionstore.Update{}, err)
		}
	}
}

// historyReader goes through a history that is told apart from a later one by its strand.
type historyReader struct {
	store  *Store
	id     sessionstore.ID
	strand int64
	spans  []span // that are left
	seq    int64  // the last segment that was read
}

func (s *Store) reader(ctx context.Context, id sessionstore.ID, last func(row) int64) (historyReader, error) {
	h := historyReader{store: s, id: id}
	err := s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		h.strand = r.strand
		h.spans, err = r.spans(ctx, tx, last(r))
		return err
	})
	return h, err
}

// next reads segments until they are long enough, in a snapshot that ends with it.
func (h *historyReader) next(ctx context.Context) ([][]byte, error) {
	var (
		page [][]byte
		seq  int64
	)
	err := h.store.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		page, seq, err = h.segments(ctx, tx)
		if err == nil && len(page) == 0 {
			err = h.gone(ctx, tx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if h.seq = seq; h.seq >= h.spans[0].last {
		h.spans = h.spans[1:]
	}
	return page, nil
}

func (h *historyReader) segments(ctx context.Context, tx *sql.Tx) (page [][]byte, seq int64, err error) {
	now := h.spans[0]
	rows, err := tx.QueryContext(ctx, `
		SELECT seq, body FROM segments
		WHERE strand = ? AND seq > ? AND seq <= ?
			AND EXISTS (SELECT 1 FROM sessions WHERE id = ? AND strand = ?)
		ORDER BY seq`, now.strand, h.seq, now.last, string(h.id), h.strand)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for size := 0; size < pageBytes && rows.Next(); {
		var body []byte
		if err := rows.Scan(&seq, &body); err != nil {
			return nil, 0, err
		}
		page = append(page, body)
		size += len(body)
	}
	return page, seq, rows.Err()
}

// gone says why the segments that should come next are not there.
func (h *historyReader) gone(ctx context.Context, tx *sql.Tx) error {
	r, err := find(ctx, tx, h.id)
	switch {
	case err != nil:
		return err
	case r.strand != h.strand:
		return &sessionstore.ReplacedError{ID: h.id}
	}
	return &damageError{errors.New("a segment of the history is missing")}
}

// States implements [sessionstore.Store].
func (s *Store) States(ctx context.Context, id sessionstore.ID) (states []sessionstore.Update, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		states = nil
		r, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, kind := range sessionstore.StateKinds() {
			var body []byte
			err := tx.QueryRowContext(ctx, "SELECT body FROM states WHERE session = ? AND kind = ?", r.key, string(kind)).Scan(&body)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			states = append(states, sessionstore.Update{Kind: kind, Raw: body})
		}
		return nil
	})
	return states, err
}
