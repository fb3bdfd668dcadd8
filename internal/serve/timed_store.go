package serve

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// timedStore is a session store that tells how long the operations take for which users wait most
// often, and whether they failed.
type timedStore struct {
	sessionstore.Store
	took func(operation string, d time.Duration, err error)
}

func (s timedStore) Create(
	ctx context.Context, n sessionstore.Session,
) (l sessionstore.Lease, err error) {
	defer s.time("create", time.Now(), &err)
	return s.Store.Create(ctx, n)
}

func (s timedStore) List(ctx context.Context, q sessionstore.Query) (p sessionstore.Page, err error) {
	defer s.time("list", time.Now(), &err)
	return s.Store.List(ctx, q)
}

func (s timedStore) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (l sessionstore.Lease, err error) {
	defer s.time("activate", time.Now(), &err)
	return s.Store.Activate(ctx, id, a)
}

func (s timedStore) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (n int64, err error) {
	defer s.time("begin_turn", time.Now(), &err)
	return s.Store.BeginTurn(ctx, l, t)
}

func (s timedStore) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) (err error) {
	defer s.time("append", time.Now(), &err)
	return s.Store.Append(ctx, l, segment)
}

func (s timedStore) time(operation string, begun time.Time, err *error) {
	s.took(operation, time.Since(begun), *err)
}
