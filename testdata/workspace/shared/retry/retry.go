// Package retry tries something again, with growing pauses.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Policy says how often and how fast. Its zero value tries once.
type Policy struct {
	// Attempts is the most there will be, the first included.
	Attempts int
	// First is the pause after the first attempt.
	First time.Duration
	// Factor is what each further pause is multiplied by.
	Factor float64
	// Longest bounds a pause. Zero means a minute.
	Longest time.Duration
}

// Do calls try until it succeeds, fails for good, or the attempts are used up.
func (p Policy) Do(ctx context.Context, try func(context.Context) error) error {
	pause := p.First
	for attempt := 1; ; attempt++ {
		err := try(ctx)
		var permanent *permanentError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &permanent):
			return permanent.err
		case attempt >= p.Attempts:
			return fmt.Errorf("gave up after %d attempts: %w", attempt, err)
		}
		if err := sleep(ctx, jitter(pause)); err != nil {
			return err
		}
		pause = p.next(pause)
	}
}

func (p Policy) next(pause time.Duration) time.Duration {
	longest := p.Longest
	if longest == 0 {
		longest = time.Minute
	}
	return min(longest, time.Duration(float64(pause)*p.Factor))
}

// jitter spreads the pauses of many clients, so that they do not come back at the same moment.
func jitter(pause time.Duration) time.Duration {
	if pause <= 0 {
		return 0
	}
	return pause/2 + rand.N(pause/2+1)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error after which another attempt is of no use.
func Permanent(err error) error { return &permanentError{err} }
