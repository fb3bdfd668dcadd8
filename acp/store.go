package acp

import (
	"context"
	"errors"
	"log/slog"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// errStorePanicked is the error of a store's method that panicked.
var errStorePanicked = errors.New("internal error: the code of the session store panicked")

// guardedStore is an embedder's store. A panic in one of its methods is logged and becomes an
// error, so that it fails only what needs the store, whatever goroutine calls it. The iterators run
// their caller's code too and are not guarded: they are read where a request waits.
type guardedStore struct {
	sessionstore.Store
	log *slog.Logger
}

// recover is deferred around a method. It replaces the error by errStorePanicked after a panic.
func (g guardedStore) recover(err *error) {
	if value := recover(); value != nil {
		jsonrpc.LogPanic(g.log, value, "in", "session store")
		*err = errStorePanicked
	}
}

// Create implements [sessionstore.Sessions].
func (g guardedStore) Create(
	ctx context.Context, s sessionstore.NewSession,
) (l sessionstore.Lease, err error) {
	defer g.recover(&err)
	return g.Store.Create(ctx, s)
}

// Get implements [sessionstore.Sessions].
func (g guardedStore) Get(
	ctx context.Context, id sessionstore.ID,
) (s sessionstore.Session, err error) {
	defer g.recover(&err)
	return g.Store.Get(ctx, id)
}

// List implements [sessionstore.Sessions].
func (g guardedStore) List(
	ctx context.Context, q sessionstore.Query,
) (p sessionstore.Page, err error) {
	defer g.recover(&err)
	return g.Store.List(ctx, q)
}

// Activate implements [sessionstore.Sessions].
func (g guardedStore) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (l sessionstore.Lease, err error) {
	defer g.recover(&err)
	return g.Store.Activate(ctx, id, a)
}

// Fork implements [sessionstore.Sessions].
func (g guardedStore) Fork(
	ctx context.Context, source sessionstore.ID, s sessionstore.NewSession,
) (l sessionstore.Lease, err error) {
	defer g.recover(&err)
	return g.Store.Fork(ctx, source, s)
}

// SaveState implements [sessionstore.Sessions].
func (g guardedStore) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) (err error) {
	defer g.recover(&err)
	return g.Store.SaveState(ctx, l, state, key)
}

// Delete implements [sessionstore.Sessions].
func (g guardedStore) Delete(
	ctx context.Context, id sessionstore.ID,
) (err error) {
	defer g.recover(&err)
	return g.Store.Delete(ctx, id)
}

// SetTitle implements [sessionstore.Labels].
func (g guardedStore) SetTitle(
	ctx context.Context, l sessionstore.Lease, title string,
) (err error) {
	defer g.recover(&err)
	return g.Store.SetTitle(ctx, l, title)
}

// Rename implements [sessionstore.Labels].
func (g guardedStore) Rename(
	ctx context.Context, id sessionstore.ID, title string,
) (err error) {
	defer g.recover(&err)
	return g.Store.Rename(ctx, id, title)
}

// Archive implements [sessionstore.Labels].
func (g guardedStore) Archive(
	ctx context.Context, id sessionstore.ID,
) (err error) {
	defer g.recover(&err)
	return g.Store.Archive(ctx, id)
}

// Unarchive implements [sessionstore.Labels].
func (g guardedStore) Unarchive(
	ctx context.Context, id sessionstore.ID,
) (err error) {
	defer g.recover(&err)
	return g.Store.Unarchive(ctx, id)
}

// BeginTurn implements [sessionstore.Histories].
func (g guardedStore) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (number int64, err error) {
	defer g.recover(&err)
	return g.Store.BeginTurn(ctx, l, t)
}

// Append implements [sessionstore.Histories].
func (g guardedStore) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) (err error) {
	defer g.recover(&err)
	return g.Store.Append(ctx, l, segment)
}

// EndTurn implements [sessionstore.Histories].
func (g guardedStore) EndTurn(
	ctx context.Context, l sessionstore.Lease, number int64, reason sessionstore.StopReason,
) (err error) {
	defer g.recover(&err)
	return g.Store.EndTurn(ctx, l, number, reason)
}

// States implements [sessionstore.Histories].
func (g guardedStore) States(
	ctx context.Context, id sessionstore.ID,
) (states []sessionstore.Update, err error) {
	defer g.recover(&err)
	return g.Store.States(ctx, id)
}

// NewDraft implements [sessionstore.Histories].
func (g guardedStore) NewDraft(
	ctx context.Context, id sessionstore.ID,
) (d sessionstore.Draft, err error) {
	defer g.recover(&err)
	return g.Store.NewDraft(ctx, id)
}

// Import implements [sessionstore.Imports].
func (g guardedStore) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	defer g.recover(&err)
	return g.Store.Import(ctx, agent, sessions)
}

// Adopt implements [sessionstore.Imports].
func (g guardedStore) Adopt(
	ctx context.Context, agent sessionstore.Agent, s sessionstore.Imported, history sessionstore.Draft,
) (l sessionstore.Lease, err error) {
	defer g.recover(&err)
	return g.Store.Adopt(ctx, agent, s, history)
}
