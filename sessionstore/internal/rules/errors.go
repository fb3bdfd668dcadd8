package rules

import (
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// ErrUnreleased reports the data of a program that was never released.
var ErrUnreleased = errors.New("it is from a version of the program before the first release")

// NewerError reports data that needs a newer program.
type NewerError struct {
	Oldest  int // the oldest version that may use the data
	Version int // the version that this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("it is from a newer version of the program: "+
		"it needs schema version %d, this program has %d", e.Oldest, e.Version)
}

// DescribesCall reports whether err is about a call rather than about the store's medium.
func DescribesCall(err error) bool {
	for _, target := range []error{
		sessionstore.ErrClosed, sessionstore.ErrExists, sessionstore.ErrDraft,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return errors.As(err, new(*sessionstore.NotFoundError)) ||
		errors.As(err, new(*sessionstore.FencedError))
}
