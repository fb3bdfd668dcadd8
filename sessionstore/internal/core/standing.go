package core

import (
	"crypto/sha256"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// standing decides whether a session may be deleted because of its agent, or replaced by a copy.
type standing struct {
	id          sessionstore.ID
	key, strand int64
	name        []byte // of its tombstone, nil if it has no state key
	imported    bool   // it came from its agent's list
	turns       int64
	last        int64 // the last segment of its history
	labelled    bool  // it is archived or renamed
	opened      bool  // it has had a second lease
	updated     int64
}

// standings returns and locks the owner's sessions that match a condition, whose arguments are $2
// and later.
func (tx *transaction) standings(condition string, args ...any) (found []standing, err error) {
	var s standing
	err = tx.each([]any{(*string)(&s.id), &s.key, &s.strand, &s.name, &s.imported, &s.turns, &s.last,
		&s.labelled, &s.opened, &s.updated}, func() error {
		found = append(found, s)
		s.name = nil
		return nil
	}, "SELECT id, key, strand, name, imported, turns, last, archived OR renamed, generation <> key, "+
		"updated FROM sessions WHERE owner = $1 AND "+condition+tx.forWrite(), args...)
	return found, err
}

// oneStanding returns and locks the session that matches a condition, or nil.
func (tx *transaction) oneStanding(condition string, args ...any) (*standing, error) {
	found, err := tx.standings(condition, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// neverUsed reports whether the session was imported and nothing was stored in it.
func (s standing) neverUsed() bool { return s.imported && s.turns == 0 && s.last == 0 }

// untouched reports whether the session was imported and never used, archived or renamed.
func (s standing) untouched() bool { return s.neverUsed() && !s.labelled }

// retires reports whether the session is deleted once its agent no longer lists it.
func (s standing) retires() bool { return s.untouched() && !s.opened }

// restores reports whether a store takes a copy of a session that was last used at a time. same is
// the session with its id, holder the one with its state key. Nil means there is none.
func restores(updated time.Time, same, holder *standing) bool {
	older := func(s *standing) bool { return s.updated < updated.UnixMilli() }
	return (same == nil || older(same)) && (holder == nil || holder.neverUsed() || older(holder))
}

// tombstone returns the name of a tombstone: a hash of the state key, so that a deleted session
// leaves nothing readable.
func tombstone(stateKey string) []byte {
	name := sha256.Sum256([]byte(stateKey))
	return name[:]
}

// bury decides what remembering deleted sessions does to a store. The holders that have such a name
// and were never touched are deleted. Others with such a name stay, and are left out of tombstones.
func bury(
	deleted []sessionstore.Deleted, holders []standing,
) (remove []standing, tombstones []sessionstore.Deleted) {
	kept := make(map[string]bool)
	for _, h := range holders {
		if h.untouched() {
			remove = append(remove, h)
		} else {
			kept[string(h.name)] = true
		}
	}
	for _, d := range deleted {
		if !kept[string(d.Name[:])] {
			tombstones = append(tombstones, d)
		}
	}
	return remove, tombstones
}
