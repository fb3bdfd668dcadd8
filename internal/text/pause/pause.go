// Package pause waits between two attempts, and between things that are done regularly.
//
// The loops that try something again have little else in common: what they repeat, how often, and
// how the pause grows follow from what failed.
package pause

import (
	"context"
	"iter"
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

// Every yields the time after each interval of length d, until ctx ends.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}
