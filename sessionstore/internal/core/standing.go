package core

import (
	"crypto/sha256"
	"time"
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
