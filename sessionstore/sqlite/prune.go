package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// pruneBatchSize is the number of sessions that are deleted in one transaction. Between two of
	// them other writers get their turn.
	pruneBatchSize = 200
	// retentionInterval is the time between two applications of Options.Retention, among all
	// processes that use the store.
	retentionInterval = 24 * time.Hour
	// retentionTimeout limits how long it delays a program that exits.
	retentionTimeout = time.Second
)

// pruneCondition matches the sessions to prune. Its parameters are those of
// [sessionstore.PruneQuery.Bounds].
const pruneCondition = "(updated < ?2 OR updated < ?1 AND turns = 0 AND last = 0 AND NOT EXISTS " +
	"(SELECT 1 FROM runtime_keys WHERE session = key AND imported))"

// Prune implements [sessionstore.Store].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	unused, all := q.Bounds()
	if q.DryRun {
		err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE "+pruneCondition, unused, all).Scan(&n)
		})
		return n, err
	}
	for after, more := int64(0), true; more && err == nil; {
		var batch []row
		err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			batch, err = s.pruneBatch(ctx, tx, unused, all, after)
			return err
		})
		if err == nil && len(batch) > 0 {
			n += len(batch)
			after = batch[len(batch)-1].key
		}
		more = len(batch) == pruneBatchSize
	}
	if n == 0 {
		return 0, err
	}
	if eraseErr := s.erase(ctx); err == nil {
		err = eraseErr
	}
	return n, err
}

// pruneBatch deletes the next sessions after a key.
func (s *Store) pruneBatch(ctx context.Context, tx *sql.Tx, unused, all, after int64) ([]row, error) {
	if err := s.deleteOldDrafts(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT key, strand FROM sessions WHERE "+pruneCondition+" AND key > ?3 ORDER BY key LIMIT ?4",
		unused, all, after, pruneBatchSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var batch []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.branch); err != nil {
			return nil, err
		}
		batch = append(batch, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, r := range batch {
		if err := s.deleteSession(ctx, tx, r); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

// applyRetention prunes what Options.Retention allows. It is called when the store is closed, since
// nobody waits for an answer then. A program that is killed leaves it to the next one, and so does
// an error.
func (s *Store) applyRetention() {
	if s.options.Retention <= 0 || !s.isOpen() || !s.retentionIsDue() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), retentionTimeout)
	defer cancel()
	_, _ = s.Prune(ctx, sessionstore.PruneQuery{UnusedBefore: s.options.Now().Add(-s.options.Retention)})
}

// isOpen reports whether a call has opened the file.
func (s *Store) isOpen() bool {
	s.using.RLock()
	defer s.using.RUnlock()
	select {
	case <-s.opening:
		defer func() { s.opening <- struct{}{} }()
		return s.db != nil
	default:
		return false
	}
}

// retentionIsDue reports whether no process has applied the retention for long enough, and records
// that this one does. The time is the modification time of the lock file, to which nothing is ever
// written.
func (s *Store) retentionIsDue() bool {
	path, now := filepath.Join(s.options.Dir, lockFileName), s.options.Now()
	info, err := os.Stat(path)
	if err != nil || now.Sub(info.ModTime()) < retentionInterval {
		return false
	}
	return os.Chtimes(path, time.Time{}, now) == nil
}
