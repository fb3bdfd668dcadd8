// Package pause waits between two attempts, and between things that are done regularly.
//
// The loops that try something again have little else in common: what they repeat, how often, and
// how the pause grows follow from what failed.
package pause

import (
	"context"
	"iter"
	"math"
	"net/http"
	"strconv"
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

// Attempts yields at once, and then after pauses that grow from 50 ms to 5 s, until ctx ends.
func Attempts(ctx context.Context) func(yield func() bool) {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	return func(yield func() bool) {
		for pause := first; ctx.Err() == nil && yield(); pause = min(2*pause, longest) {
			_ = For(ctx, pause)
		}
	}
}

// Until returns how long it is until a time that a server names, as in the header Retry-After: a
// time, a number of seconds or milliseconds since 1970, a number of seconds, or a duration. It is 0
// if the server names none.
func Until(named string, now time.Time) time.Duration {
	const year = 365 * 24 * time.Hour
	at, err := time.Parse(time.RFC3339, named)
	if err != nil {
		at, err = http.ParseTime(named)
	}
	if err == nil {
		return max(0, at.Sub(now))
	}
	number, err := strconv.ParseFloat(named, 64)
	switch after, _ := time.ParseDuration(named); {
	case err != nil, math.IsNaN(number):
		return max(0, after)
	case number > float64(now.Add(-year).UnixMilli()):
		number = number/1e3 - float64(now.UnixMilli())/1e3
	case number > float64(now.Add(-year).Unix()):
		number -= float64(now.UnixMilli()) / 1e3
	}
	return time.Duration(max(0, min(number, year.Seconds())) *
		float64(time.Second)).Round(time.Millisecond)
}
