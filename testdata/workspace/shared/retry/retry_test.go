package retry

import (
	"context"
	"errors"
	"testing"
)

func TestAPermanentErrorEndsTheAttempts(t *testing.T) {
	declined := errors.New("declined")
	attempts := 0
	err := Policy{Attempts: 5}.Do(context.Background(), func(context.Context) error {
		attempts++
		return Permanent(declined)
	})
	if attempts != 1 || !errors.Is(err, declined) {
		t.Fatalf("%d attempts, %v", attempts, err)
	}
}

func TestTheAttemptsAreUsedUp(t *testing.T) {
	attempts := 0
	err := Policy{Attempts: 3}.Do(context.Background(), func(context.Context) error {
		attempts++
		return errors.New("busy")
	})
	if attempts != 3 || err == nil {
		t.Fatalf("%d attempts, %v", attempts, err)
	}
}
