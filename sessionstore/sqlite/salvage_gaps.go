package sqlite

import "context"

// lostPart stands in a history for segments that could not be read.
const lostPart = `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` +
	`"\n\n[A part of this session was lost when its store was damaged.]\n\n"}}}`

// fillGaps puts a notice into each gap of a session's history, and reports whether the history has any.
func (c *copying) fillGaps(ctx context.Context, r row) (incomplete bool, err error) {
	spans, err := r.spans(ctx, c.tx, r.last)
	if err != nil {
		return false, err
	}
	after := int64(0)
	for _, s := range spans {
		ends, noticed, err := c.gaps(ctx, s, after)
		if err != nil {
			return false, err
		}
		for _, end := range ends {
			_, err := c.tx.ExecContext(ctx, "INSERT INTO segments (strand, seq, turn, updates, body) VALUES (?, ?, 0, 1, ?)",
				s.strand, end, []byte(lostPart))
			if err != nil {
				return false, err
			}
		}
		c.filled += len(ends)
		incomplete = incomplete || noticed || len(ends) > 0
		after = s.last
	}
	return incomplete, nil
}

// gaps are the last numbers of the runs of segments that s misses after a segment; noticed tells of runs
// that have their notice, from a session that shares them or an earlier repair.
func (c *copying) gaps(ctx context.Context, s span, after int64) (ends []int64, noticed bool, err error) {
	rows, err := c.tx.QueryContext(ctx, "SELECT seq, body = ? FROM segments WHERE strand = ? AND seq > ? AND seq <= ? ORDER BY seq",
		[]byte(lostPart), s.strand, after, s.last)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			seq    int64
			notice bool
		)
		if err := rows.Scan(&seq, &notice); err != nil {
			return nil, false, err
		}
		switch {
		case notice:
			noticed = true
		case seq > after+1:
			ends = append(ends, seq-1)
		}
		after = seq
	}
	if after < s.last {
		ends = append(ends, s.last)
	}
	return ends, noticed, rows.Err()
}
