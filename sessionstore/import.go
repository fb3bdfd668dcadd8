package sessionstore

import (
	"encoding/json"
	"errors"
	"time"
)

const (
	// MaxTombstones is the number of deleted sessions that a store remembers in order not to import
	// them again.
	MaxTombstones = 10_000
	// TombstoneAge is how long it remembers one after the agent listed it last.
	TombstoneAge = 180 * 24 * time.Hour
)

// Imported is a session that an agent lists itself, see [Imports.Import].
type Imported struct {
	// ID is the session's id if it is new.
	ID ID
	// StateKey is the agent's name for it. It must not be empty.
	StateKey string
	// State is the backend's value for it.
	State []byte
	// Keys are its roots and their real paths now.
	Keys Keys
	// Title is one line, or "".
	Title string
	// Updated is the time of its last activity; the zero time means now.
	Updated time.Time
	// Archived says that the agent lists it as archived.
	Archived bool
	// Meta is its _meta in the agent's list, or nil.
	Meta json.RawMessage
}

// Validate returns an error unless the session can be stored.
func (s Imported) Validate() error {
	if s.StateKey == "" {
		return errors.New("an imported session needs the name that its agent has for it")
	}
	return s.Keys.Validate()
}
