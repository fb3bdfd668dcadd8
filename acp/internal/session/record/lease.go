package record

import (
	"cmp"
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Gone reports whether an error of the store means that another process took the session over, or
// that it was deleted, so that nothing more of it can be stored.
func Gone(err error) bool {
	return errors.As(err, new(*sessionstore.FencedError)) ||
		errors.As(err, new(*sessionstore.NotFoundError))
}

// Write writes to the store with the current lease. Because backends and the recorder call it on
// their own goroutines, it turns a panic of the store into an error.
func (r *Record) Write(do func(sessionstore.Lease) error) error {
	r.leasing.RLock()
	defer r.leasing.RUnlock()
	return r.options.Tasks.Guard("session store", func() error { return do(r.lease) })
}

// Check returns an error if the session is gone.
func (r *Record) Check(ctx context.Context) error {
	return r.Write(func(l sessionstore.Lease) error { return r.options.Store.Append(ctx, l, nil) })
}

// TakeOver stores a new activation of the session. Writes wait until it is stored and then use its
// lease, so that a turn that is still running is recorded to its end. If another process has taken
// the session over, the record keeps its old lease, so that nothing that is still written is stored
// after what the other process wrote. The store decides this in the transaction of the activation.
func (r *Record) TakeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	r.leasing.Lock()
	defer r.leasing.Unlock()
	store, again := r.options.Store, change.Held != 0
	change.Held = cmp.Or(change.Held, r.lease.Generation)
	l, err := store.Activate(ctx, r.lease.ID, change)
	if err == nil && change.Held == r.lease.Generation {
		r.lease = l
	}
	if _, fenced := errors.AsType[*sessionstore.FencedError](err); again || !fenced {
		return l, err
	}
	change.Held = 0
	return store.Activate(ctx, r.lease.ID, change)
}
