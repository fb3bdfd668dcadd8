// Package pause waits between two attempts.
//
// The loops that try something again have little else in common: what they repeat, how often, and
// how the pause grows follow from what failed.
package pause

import (
	"context"
	"time"
)

// For waits for d. If ctx ends first, it returns the cause.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
