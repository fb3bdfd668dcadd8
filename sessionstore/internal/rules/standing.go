package rules

import (
	"crypto/sha256"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Standing decides whether a session may be deleted because of its agent, or replaced by a copy.
type Standing struct {
	Imported bool // it came from its agent's list
	Turns    int64
	Last     int64 // the last segment of its history
	Labelled bool  // it is archived or renamed
	Opened   bool  // it has had a second lease
	Updated  int64
}

// NeverUsed reports whether the session was imported and nothing was stored in it.
func (s Standing) NeverUsed() bool { return s.Imported && s.Turns == 0 && s.Last == 0 }

// untouched reports whether the session was imported and never used, archived or renamed.
func (s Standing) untouched() bool { return s.NeverUsed() && !s.Labelled }

// Retires reports whether the session is deleted once its agent no longer lists it.
func (s Standing) Retires() bool { return s.untouched() && !s.Opened }

// Restores reports whether a store takes a copy of a session that was last used at a time. same is
// the session with its id, holder the one with its state key. Nil means there is none.
func Restores(updated time.Time, same, holder *Standing) bool {
	older := func(s *Standing) bool { return s.Updated < updated.UnixMilli() }
	return (same == nil || older(same)) && (holder == nil || holder.NeverUsed() || older(holder))
}

// KeyChange is what giving a session a state key changes besides the key.
type KeyChange struct {
	// Remember is the state key that the session had and that gets a tombstone, or "".
	Remember string
	// Reset says that what the agent's list said of the session no longer applies.
	Reset bool
}

// ChangeKey returns what giving a session the state key after changes. A session that loses its key
// without getting another is not remembered: its agent may list it again.
func ChangeKey(before, after string) (c KeyChange) {
	if after != "" && before != after {
		c = KeyChange{Remember: before, Reset: before != ""}
	}
	return c
}

// TombstonesAtOnce is the number of old tombstones that adding one deletes at most.
const TombstonesAtOnce = 8

// Tombstone returns the name of a tombstone: a hash of the state key, so that a deleted session
// leaves nothing readable.
func Tombstone(stateKey string) [sha256.Size]byte { return sha256.Sum256([]byte(stateKey)) }

// Holder is a stored session with the state key of a deleted one.
type Holder struct {
	Name [sha256.Size]byte
	Standing
}

// Bury decides what remembering deleted sessions does to a store. The holders at the indexes remove
// have such a name and were never touched, so they are deleted. Others with such a name stay, and
// are left out of tombstones.
func Bury(
	deleted []sessionstore.Deleted, holders []Holder,
) (remove []int, tombstones []sessionstore.Deleted) {
	kept := make(map[[sha256.Size]byte]bool)
	for _, d := range deleted {
		kept[d.Name] = false
	}
	for i, h := range holders {
		_, named := kept[h.Name]
		switch {
		case !named:
		case h.untouched():
			remove = append(remove, i)
		default:
			kept[h.Name] = true
		}
	}
	for _, d := range deleted {
		if !kept[d.Name] {
			tombstones = append(tombstones, d)
		}
	}
	return remove, tombstones
}
