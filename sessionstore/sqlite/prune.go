package sqlite

import (
	"context"
	"database/sql"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// pruneBatch is how many sessions are removed in one transaction, so that other writers get their turn.
const pruneBatch = 200

// pruned are the sessions that a prune removes. Its parameters are those of [sessionstore.PruneQuery.Bounds].
const pruned = "(updated < ?2 OR updated < ?1 AND turns = 0 AND last = 0 AND NOT EXISTS " +
	"(SELECT 1 FROM runtime_keys WHERE session = key AND imported))"

// Prune implements [sessionstore.Store].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	unused, all := q.Bounds()
	if q.DryRun {
		err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE "+pruned, unused, all).Scan(&n)
		})
		return n, err
	}
	for after, more := int64(0), true; more && err == nil; {
		var batch []row
		err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			if err := s.dropOldDrafts(ctx, tx); err != nil {
				return err
			}
			if batch, err = oldest(ctx, tx, unused, all, after); err != nil {
				return err
			}
			for _, r := range batch {
				if err := s.bury(ctx, tx, r.key); err != nil {
					return err
				}
				if err := remove(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil && len(batch) > 0 {
			n += len(batch)
			after = batch[len(batch)-1].key
		}
		more = len(batch) == pruneBatch
	}
	if n == 0 {
		return 0, err
	}
	if scrubErr := s.use(ctx, func(db *database) error { return s.explain(s.scrub(ctx, db)) }); err == nil {
		err = scrubErr
	}
	return n, err
}

// oldest are the next sessions to prune behind the key after.
func oldest(ctx context.Context, tx *sql.Tx, unused, all, after int64) ([]row, error) {
	rows, err := tx.QueryContext(ctx, "SELECT key, strand FROM sessions WHERE "+pruned+" AND key > ?3 ORDER BY key LIMIT ?4",
		unused, all, after, pruneBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var batch []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.strand); err != nil {
			return nil, err
		}
		batch = append(batch, r)
	}
	return batch, rows.Err()
}
