package core

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// retentionTimeout limits how long the retention delays a program that exits.
const retentionTimeout = time.Second

// pruneCondition matches the sessions to prune.
const pruneCondition = "owner = $1 AND " +
	"(updated < $3 OR updated < $2 AND turns = 0 AND last = 0 AND NOT imported)"

// Prune implements [sessionstore.Store].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	bounds := []any{millis(q.UnusedBefore), millis(q.Before)}
	ids, err := transact(ctx, s, List, func(tx *transaction) []string {
		return column[string](tx.rows("SELECT id FROM sessions WHERE "+pruneCondition, bounds...))
	})
	if err != nil || q.DryRun {
		return len(ids), err
	}
	return s.oneByOne(ctx, ids, func(tx *transaction, id string) bool {
		r := tx.lockWithAgent(sessionstore.ID(id))
		matches := r != nil && tx.row([]any{new(string)}, "SELECT id FROM sessions WHERE "+
			pruneCondition+" AND id = $4", append(bounds[:2:2], id)...)
		if matches {
			tx.deleteSession(r)
		}
		return matches
	})
}

// oneByOne calls do with each id, in a transaction for each, and returns how many it has dealt
// with. Others write in between.
func (s *Store) oneByOne(
	ctx context.Context, ids []string, do func(tx *transaction, id string) bool,
) (n int, err error) {
	defer s.purgeSoon()
	for _, id := range ids {
		start := time.Now()
		done, err := transact(ctx, s, Write, func(tx *transaction) bool { return do(tx, id) })
		if done {
			n++
		}
		if err == nil {
			err = pause.For(ctx, time.Since(start)/2)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
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
	now, err := transact(ctx, s, Read, (*transaction).now)
	if err != nil {
		return
	}
	q := sessionstore.PruneQuery{UnusedBefore: toTime(now).Add(-s.options.Retention)}
	owners, _ := s.Owners(ctx)
	for _, owner := range owners {
		if _, err := s.of(owner).Prune(ctx, q); err != nil {
			return
		}
	}
}
