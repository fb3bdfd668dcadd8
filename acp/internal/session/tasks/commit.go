package tasks

import (
	"context"
	"errors"
	"time"
)

// CommitTimeout limits the work that must still be done after a request, a turn or a connection has
// ended, such as storing the end of a turn.
const CommitTimeout = 10 * time.Second

// errNotStored is the cause of a context whose CommitTimeout has passed.
var errNotStored = errors.New("the session could not be stored in time, because too much is " +
	"stored at once or the disk is slow; try again")

// Commit returns a context for what must be done within CommitTimeout, even if ctx has ended.
func Commit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), CommitTimeout, errNotStored)
}

// Insist calls do, which may be called again, until it is done or the context of a [Commit] ends
// after ctx.
func Insist(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	ctx, cancel := Commit(ctx)
	defer cancel()
	return do(ctx)
}
