package sessionstore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// MaxTombstones is how many deleted sessions of an agent a store remembers in order not to
	// import them again.
	MaxTombstones = 10_000
	// TombstoneAge is how long a store remembers a deleted session after the agent last listed it.
	TombstoneAge = 180 * 24 * time.Hour
)

// Deleted is a store's record of a deleted session, which makes Import skip it.
type Deleted struct {
	Name [sha256.Size]byte // the SHA-256 of its StateKey
	At   time.Time         // when it was deleted or, if later, last listed by the agent
}

// Imported is a session in an agent's own list; see [Store.Import].
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
	// Archived reports whether the agent lists it as archived.
	Archived bool
	// Meta is its _meta in the agent's list, or nil.
	Meta json.RawMessage
	// OnlyKnown skips the session unless the store has it. It does not count as listed, so that
	// Retain never removes it.
	OnlyKnown bool
}

// Listed describes a complete list of an agent's sessions, see [Store.Retain].
type Listed struct {
	// Asked is when the agent was asked for the list. Sessions that it first listed later, perhaps
	// to another process, are kept.
	Asked time.Time
	// Cwds are the working directories whose sessions are listed; nil means all.
	Cwds []workspace.Dir
	// StateKeys has the names of the sessions in the list.
	StateKeys map[string]bool
}

// Validate returns an error unless the session can be stored.
func (s Imported) Validate() error {
	if s.StateKey == "" {
		return errors.New("an imported session needs the name that its agent has for it")
	}
	return errors.Join(s.ID.Validate(), s.Keys.Validate())
}
