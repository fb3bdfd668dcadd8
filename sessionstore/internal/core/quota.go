package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// quotaFresh is how long a measured size is used; other processes may store more meanwhile. An
	// owner who has reached the limit may have deleted sessions, so then it is quotaRecheck.
	quotaFresh   = 10 * time.Minute
	quotaRecheck = 5 * time.Second
)

// errUnmeasured ends a transaction before which the owner's sessions must be measured.
var errUnmeasured = errors.New("the size of the sessions is not known")

// quota counts what an owner's sessions take. It is safe for concurrent use.
type quota struct {
	limit atomic.Int64 // bytes, 0 for none

	mu       sync.Mutex
	used     int
	measured time.Time // when the database was asked last
}

// Limit implements [sessionstore.Shared].
func (s *Store) Limit(owner string, bytes int) { s.of(owner).quota.limit.Store(int64(bytes)) }

// take counts n more bytes, which the transaction stores. It fails if the transaction begins
// something for which there is no room.
func (tx *transaction) take(n int) {
	q, limit := tx.quota, int(tx.quota.limit.Load())
	q.mu.Lock()
	defer q.mu.Unlock()
	age, full := tx.asked.Sub(q.measured), q.used+n > limit
	switch {
	case !tx.begins || limit == 0:
	case age > quotaFresh || full && age > quotaRecheck:
		must(errUnmeasured)
	case full:
		must(&sessionstore.QuotaError{Limit: limit})
	}
	q.used += n
}

// measure asks the database for the size of the owner's sessions, unless that was just done.
func (s *Store) measure(ctx context.Context) error {
	q := s.quota
	return s.run(ctx, List, func(tx *transaction) {
		q.mu.Lock()
		before, recent := q.used, tx.asked.Sub(q.measured) <= quotaRecheck
		q.mu.Unlock()
		if recent {
			return
		}
		var size int64
		tx.row([]any{&size}, `
			SELECT (SELECT CAST($2 AS bigint) * count(*) + coalesce(sum(length(meta)), 0)
					FROM sessions WHERE owner = $1)
				+ (SELECT coalesce(sum(length(body)), 0) FROM sessions s
					JOIN segments g ON g.owner = s.owner AND g.strand = s.strand WHERE s.owner = $1)
				+ (SELECT coalesce(sum(length(body)), 0) FROM states WHERE owner = $1)`,
			sessionstore.SessionBytes)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.used, q.measured = q.used+int(size)-before, time.Now() // with what was added meanwhile
	})
}
