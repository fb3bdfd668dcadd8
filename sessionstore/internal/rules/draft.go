package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// MaxDraftAge is the age at which a draft is deleted, because its process has probably died.
const MaxDraftAge = 24 * time.Hour

// Draft is a strand of segments that does not belong to a session yet. Its states are few and kept
// in memory.
type Draft struct {
	ID     sessionstore.ID // the session that it is for, or ""
	Strand int64
	Last   int64 // the number of its last segment

	states map[sessionstore.Kind]sessionstore.Update
}

// Append adds updates. It calls add to store those that are history, which returns the number of
// the last segment.
func (d *Draft) Append(
	updates []sessionstore.Update, add func(history []sessionstore.Update) (last int64, err error),
) error {
	history, states := sessionstore.Split(updates)
	last, err := add(history)
	if err != nil {
		return err
	}
	d.Last = last
	if d.states == nil {
		d.states = make(map[sessionstore.Kind]sessionstore.Update)
	}
	for _, u := range states {
		d.states[u.Kind] = u
	}
	return nil
}

// States returns the latest update of each state kind.
func (d *Draft) States() []sessionstore.Update { return slices.Collect(maps.Values(d.states)) }
