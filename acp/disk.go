package acp

import (
	"context"
)

// onDisk does what may have to wait for a disk, on a goroutine of its own, and waits for it as long as ctx lasts: a disk
// that does not answer takes no notice of a context. What is done too late is undone by drop, which may be nil.
func onDisk[T any](ctx context.Context, a *agent, do func() (T, error), drop func(T)) (T, error) {
	type done struct {
		value T
		err   error
	}
	taken := make(chan done)
	a.running.Go(func() {
		d := done{err: errPanicked}
		d.err = a.guard("disk", func() (err error) {
			d.value, err = do()
			return err
		})
		select {
		case taken <- d:
		case <-ctx.Done():
			if d.err == nil && drop != nil {
				drop(d.value)
			}
		}
	})
	select {
	case d := <-taken:
		return d.value, d.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
