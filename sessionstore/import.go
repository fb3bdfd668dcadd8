package sessionstore

import (
	"errors"
	"time"
)

const (
	// MaxTombstones is how many sessions of runtimes a store remembers that were deleted or given up, the latest ones.
	MaxTombstones = 10_000
	// TombstoneAge is how long a store remembers one that its runtime does not list any more.
	TombstoneAge = 180 * 24 * time.Hour
)

// Imported is a session that a runtime knows by itself, as [Store.Import] takes it.
type Imported struct {
	// ID is the session's id if it is new here.
	ID ID
	// StateKey is what the runtime calls it. Not empty.
	StateKey string
	// State is what its activation is given.
	State []byte
	// Keys are its roots, and their real paths now.
	Keys Keys
	// Title is one line, "" if there is none.
	Title string
	// Updated is its last activity; zero means now.
	Updated time.Time
}

// Validate returns an error unless the session can be stored.
func (s Imported) Validate() error {
	if s.StateKey == "" {
		return errors.New("an imported session needs the name that its runtime has for it")
	}
	return s.Keys.Validate()
}
