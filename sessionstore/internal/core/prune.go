package core

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// retentionInterval is the time between two applications of the retention, among all programs
	// that use the store. retentionTimeout limits how long that delays a program that exits.
	retentionInterval = 24 * time.Hour
	retentionTimeout  = time.Second
)

// pruneCondition matches the sessions to prune.
const pruneCondition = "owner = $1 AND " +
	"(updated < $3 OR updated < $2 AND turns = 0 AND last = 0 AND NOT imported)"

// Prune implements [sessionstore.Store].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	bound := func(t time.Time) int64 { // exclusive
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	bounds := []any{bound(q.UnusedBefore), bound(q.Before)}
	if q.DryRun {
		return transact(ctx, s, List, func(tx *transaction) (n int) {
			tx.row([]any{&n}, "SELECT count(*) FROM sessions WHERE "+pruneCondition, bounds...)
			return n
		})
	}
	defer s.purgeSoon()
	for after := ""; ; {
		id, err := transact(ctx, s, List, func(tx *transaction) (id string) {
			tx.row([]any{&id}, "SELECT id FROM sessions WHERE "+pruneCondition+
				" AND id > $4 ORDER BY id LIMIT 1", append(bounds[:2:2], after)...)
			return id
		})
		if err != nil || id == "" {
			return n, err
		}
		after = id
		start := time.Now()
		deleted, err := transact(ctx, s, Write, func(tx *transaction) bool {
			r := tx.lockWithAgent(sessionstore.ID(id))
			matches := r != nil && tx.row([]any{new(int64)}, "SELECT key FROM sessions WHERE "+
				pruneCondition+" AND id = $4", append(bounds[:2:2], id)...)
			if matches {
				tx.deleteSession(r)
			}
			return matches
		})
		if err != nil {
			return n, err
		}
		if deleted {
			n++
		}
		if err := pause.For(ctx, time.Since(start)/2); err != nil { // others write
			return n, err
		}
	}
}

// applyRetention deletes the sessions of all owners that are older than Options.Retention. It is
// called when the store is closed, because nobody waits for an answer then. If the program is
// killed or an error occurs, the next program does it.
func (s *Store) applyRetention() {
	if s.options.Retention <= 0 || !s.opened.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), retentionTimeout)
	defer cancel()
	at, err := transact(ctx, s, Write, func(tx *transaction) (at int64) {
		tx.query(func(rows Rows) { must(rows.Scan(&at)) },
			"UPDATE meta SET pruned = $1 WHERE pruned < $2 RETURNING pruned",
			tx.now(), tx.now()-retentionInterval.Milliseconds())
		return at
	})
	if err != nil || at == 0 { // it is not due, usually
		return
	}
	owners, _ := s.Owners(ctx)
	for _, owner := range owners {
		_, err := s.of(owner).Prune(ctx, sessionstore.PruneQuery{
			UnusedBefore: toTime(at).Add(-s.options.Retention)})
		if err != nil {
			return
		}
	}
}
