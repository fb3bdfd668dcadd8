package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// quotaFresh is how long the store's own figure is used; other servers may store more meanwhile.
	// A user who has reached the limit may have deleted sessions, so then it is quotaRecheck.
	quotaFresh   = 10 * time.Minute
	quotaRecheck = 5 * time.Second
)

// quota counts what a user takes: requests, and bytes of sessions in the store. Its methods are safe
// for concurrent use.
type quota struct {
	pace *rate.Limiter

	mu    sync.Mutex
	used  int
	asked time.Time // when the store was asked last
}

// take counts n more bytes. It returns a [*jsonrpc.Error] if they exceed the limit, but no error of
// the store, which the caller meets anyway.
func (q *quota) take(ctx context.Context, s sessionstore.Store, n, limit int) error {
	if limit == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	age := time.Since(q.asked)
	if age > quotaFresh || q.used+n > limit && age > quotaRecheck {
		used, err := s.Size(ctx)
		if err != nil {
			return nil
		}
		q.used, q.asked = used, time.Now()
	}
	if q.used+n > limit {
		return errQuota(limit)
	}
	q.used += n
	return nil
}

// add counts n more bytes of what was begun.
func (q *quota) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += n
}

func errQuota(limit int) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: fmt.Sprintf("your sessions take up all of the %s that the server allows you: delete "+
			"some of them first", text.Size(limit)),
		Data: json.RawMessage(`{"reason":"quota_exceeded"}`)}
}

// limitedStore is a user's session store that refuses new sessions and turns once the user's
// sessions take too much. Turns that have begun are stored to their end.
type limitedStore struct {
	sessionstore.Store
	quota *quota
	limit int // bytes, 0 for none
}

func (s limitedStore) Create(
	ctx context.Context, n sessionstore.NewSession,
) (sessionstore.Lease, error) {
	if err := s.quota.take(ctx, s.Store, sessionstore.SessionBytes, s.limit); err != nil {
		return sessionstore.Lease{}, err
	}
	return s.Store.Create(ctx, n)
}

func (s limitedStore) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (sessionstore.Lease, error) {
	if err := s.quota.take(ctx, s.Store, sessionstore.SessionBytes, s.limit); err != nil {
		return sessionstore.Lease{}, err
	}
	return s.Store.Fork(ctx, source, n)
}

func (s limitedStore) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (int64, error) {
	if err := s.quota.take(ctx, s.Store, sizeOf(t.Prompt), s.limit); err != nil {
		return 0, err
	}
	return s.Store.BeginTurn(ctx, l, t)
}

func (s limitedStore) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	s.quota.add(sizeOf(segment))
	return s.Store.Append(ctx, l, segment)
}

func sizeOf(updates []sessionstore.Update) (n int) {
	for _, u := range updates {
		n += len(u.Raw)
	}
	return n
}
