package core

import (
	"crypto/sha256"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// neverUsed reports whether the session was imported and nothing was stored in it.
func (r *row) neverUsed() bool { return r.imported && r.turns == 0 && r.last == 0 }

// untouched reports whether the session was imported and never used, archived or renamed.
func (r *row) untouched() bool { return r.neverUsed() && !r.archived && !r.renamed }

// retires reports whether the session is deleted once its agent no longer lists it. It was never
// opened, which would have made another lease.
func (r *row) retires() bool { return r.untouched() && r.generation == r.key }

// restores reports whether a store takes a copy of a session that was last used at a time. same is
// the session with its id, holder the one with its state key. Nil means there is none.
func restores(updated time.Time, same, holder *row) bool {
	older := func(r *row) bool { return r.updated < updated.UnixMilli() }
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
	deleted []sessionstore.Deleted, holders []*row,
) (remove []*row, tombstones []sessionstore.Deleted) {
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
