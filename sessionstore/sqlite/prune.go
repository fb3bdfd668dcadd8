package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

const (
	// pruneBatch is how many sessions are looked up at once, and pruneSessions how many are deleted
	// in one transaction.
	pruneBatch    = 200
	pruneSessions = 4
)

// pruneCondition matches the sessions to prune. Its parameters are those of
// [rules.Bounds], and the keys of the agents to whom the sessions belong.
const pruneCondition = "agent IN (SELECT value FROM json_each(?3)) AND " +
	"(updated < ?2 OR updated < ?1 AND turns = 0 AND last = 0 AND NOT EXISTS " +
	"(SELECT 1 FROM runtime_keys WHERE session = key AND imported))"

// Prune implements [sessionstore.Pruner].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	var bounds []any
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := s.owner.agents(tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		bounds = pruneBounds(q, agents)
		if !q.DryRun {
			return nil
		}
		return tx.row("SELECT count(*) FROM sessions WHERE "+pruneCondition, bounds...).Scan(&n)
	})
	if err != nil || q.DryRun {
		return n, err
	}
	return s.prune(ctx, bounds)
}

// pruneBounds returns the parameters of pruneCondition for the sessions of some agents.
func pruneBounds(q sessionstore.PruneQuery, agents map[int64]sessionstore.Agent) []any {
	unused, all := rules.Bounds(q)
	return []any{unused, all, asJSON(slices.Collect(maps.Keys(agents)))}
}

// prune deletes the sessions that match, of all owners.
func (s *medium) prune(ctx context.Context, bounds []any) (n int, err error) {
	err = s.write(ctx, s.deleteOldDrafts)
	for after := int64(0); err == nil; {
		var keys []int64
		keys, err = s.pruneKeys(ctx, bounds, after)
		if len(keys) == 0 {
			break
		}
		after = keys[len(keys)-1]
		for err == nil && len(keys) > 0 {
			var gone, deleted int
			start := time.Now()
			err = s.write(ctx, func(tx *transaction) (err error) {
				gone, deleted, err = s.pruneSome(tx, bounds, keys)
				return err
			})
			if err != nil {
				break
			}
			n += deleted
			keys = keys[gone:]
			err = pause.For(ctx, max(minPause, time.Since(start)))
		}
	}
	s.eraseSoon()
	return n, err
}

// pruneKeys returns the keys of the next sessions after a key that match.
func (s *medium) pruneKeys(
	ctx context.Context, bounds []any, after int64,
) (keys []int64, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		keys = nil
		query := "SELECT key FROM sessions WHERE " + pruneCondition + " AND key > ?4 ORDER BY key LIMIT ?5"
		args := append(bounds[:len(bounds):len(bounds)], after, pruneBatch)
		return tx.each(query, args, func(rows *sql.Rows) error {
			var key int64
			err := rows.Scan(&key)
			keys = append(keys, key)
			return err
		})
	})
	return keys, err
}

// pruneSome deletes the first few of the given sessions that still match, or part of one. It
// returns how many keys at the beginning are done with, and how many sessions it has deleted.
func (s *medium) pruneSome(
	tx *transaction, bounds []any, keys []int64,
) (gone, deleted int, err error) {
	for start := time.Now(); gone < min(len(keys), pruneSessions); gone++ {
		r := row{key: keys[gone]}
		err := tx.row("SELECT strand FROM sessions WHERE "+pruneCondition+
			" AND key = ?4", append(bounds[:len(bounds):len(bounds)], r.key)...).Scan(&r.strand)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			err = s.deleteSession(tx, r)
		}
		if err != nil {
			return 0, 0, err
		}
		deleted++
		if time.Since(start) > pieceTime {
			return gone + 1, deleted, nil
		}
	}
	return gone, deleted, nil
}

// applyRetention deletes the sessions of all owners that are older than Options.Retention. It is
// called when the store is closed, because nobody waits for an answer then. If the program is
// killed or an error occurs, the next program does it.
func (s *medium) applyRetention() {
	if s.options.Retention <= 0 || s.inMemory() || !s.isOpen() || !s.retentionIsDue() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rules.RetentionTimeout)
	defer cancel()
	q := sessionstore.PruneQuery{UnusedBefore: s.options.Now().Add(-s.options.Retention)}
	var bounds []any
	err := s.read(ctx, func(tx *transaction) error {
		agents, err := agentsWhere(tx, "TRUE")
		bounds = pruneBounds(q, agents)
		return err
	})
	if err == nil {
		_, _ = s.prune(ctx, bounds)
	}
}

// isOpen reports whether a call has opened the file.
func (s *medium) isOpen() bool {
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
func (s *medium) retentionIsDue() bool {
	path, now := filepath.Join(s.options.Dir, lockFileName), s.options.Now()
	info, err := os.Stat(path)
	if err != nil || now.Sub(info.ModTime()) < rules.RetentionInterval {
		return false
	}
	return os.Chtimes(path, time.Time{}, now) == nil
}
