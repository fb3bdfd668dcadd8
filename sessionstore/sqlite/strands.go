package sqlite

import (
	"context"
	"database/sql"
)

// span is a part of a history: the segments of strand after the span before it, up to last.
type span struct {
	strand, last int64
}

// inherited are the spans that a session shares with the sessions it was forked from, in order.
func inherited(ctx context.Context, tx *sql.Tx, session int64) ([]span, error) {
	rows, err := tx.QueryContext(ctx, "SELECT strand, last FROM inherits WHERE session = ? ORDER BY last", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var spans []span
	for rows.Next() {
		var s span
		if err := rows.Scan(&s.strand, &s.last); err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return spans, rows.Err()
}

// spans are the session's whole history: what it inherited and its own strand, up to last.
func (r row) spans(ctx context.Context, tx *sql.Tx, last int64) ([]span, error) {
	spans, err := inherited(ctx, tx, r.key)
	if err != nil {
		return nil, err
	}
	if len(spans) == 0 && last > 0 || len(spans) > 0 && spans[len(spans)-1].last < last {
		spans = append(spans, span{r.strand, last})
	}
	return spans, nil
}

// release deletes the segments of strands that no session needs any more, after one let go of them: all
// that lies behind the last fork, if the strand's own session is gone.
func release(ctx context.Context, tx *sql.Tx, strands []span) error {
	for _, s := range strands {
		_, err := tx.ExecContext(ctx, `
			DELETE FROM segments
			WHERE strand = ?1 AND seq > coalesce((SELECT max(last) FROM inherits WHERE strand = ?1), 0)
				AND NOT EXISTS (SELECT 1 FROM sessions WHERE strand = ?1)`, s.strand)
		if err != nil {
			return err
		}
	}
	return nil
}
