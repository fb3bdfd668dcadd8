package sessionstore

import (
	"context"
	"iter"
)

// Archiver is the part of a [Store] that archives sessions.
type Archiver interface {
	// Archive archives a session, and Unarchive undoes that. Only lists are affected; see
	// [ArchiveFilter].
	Archive(ctx context.Context, id ID) error
	Unarchive(ctx context.Context, id ID) error
}

// Mover is the part of a [Store] that moves sessions to other roots.
type Mover interface {
	// Move gives a session other roots and real paths, including its cwd, and issues a new lease:
	// whoever has the session open must load it again. Nothing else changes.
	Move(ctx context.Context, l Lease, k Keys) (Lease, error)
}

// Pruner is the part of a [Store] that deletes many old sessions.
type Pruner interface {
	// Prune deletes the sessions that q matches, and returns their number. Other writers may run in
	// between. If Prune fails, n sessions have already been deleted.
	Prune(ctx context.Context, q PruneQuery) (n int, err error)
}

// SessionBytes is what a [Sizer] counts for a session besides its history and its states.
const SessionBytes = 1 << 10

// Sizer is the part of a [Store] that knows how much it stores.
type Sizer interface {
	// Size returns about how many bytes the sessions of the store's owner take, without those that
	// were deleted, even if their data was not erased yet.
	Size(ctx context.Context) (bytes int, err error)
}

// Segmenter is the part of a [Store] that reads histories from a place in their middle.
type Segmenter interface {
	// Segments is like [Histories.History], but yields the segments that the history is stored in,
	// from the first one whose number is greater than after.
	Segments(ctx context.Context, id ID, after int64) iter.Seq2[Segment, error]
}

// Watcher is the part of a [Store] that announces what other processes do with a session. It is
// optional: without it a process learns that it has lost a session when it next writes to it.
type Watcher interface {
	// Watch returns a channel that receives a value at the beginning, and whenever the session may
	// have a newer lease or may have been deleted. It may receive further values; use an empty
	// Append to find out what has happened. The caller calls stop when it no longer reads the
	// channel. The channel is nil if the store announces nothing.
	Watch(id ID) (changed <-chan struct{}, stop func())
}

// Importer is the part of a [Store] for sessions that an agent keeps itself.
type Importer interface {
	// Import stores sessions from an agent's own list, in their order, and returns the number of
	// new ones. If one is invalid, it stores none. A new session gets the id in s and an empty
	// history. For a known session (by StateKey), Import updates Updated if it is later, Meta, and
	// the title, unless the session was renamed or is unused: a title that the agent took from the
	// first prompt, or gives all new sessions, replaces none. It does not change whether a known
	// session is archived. An unused session that the agent lists with later activity counts as
	// imported from then on; see [UnusedGrace]. A time more than a day in the future counts as
	// unknown, and an earlier one replaces it.
	//
	// Import skips sessions with OnlyKnown that it does not have, and sessions that were deleted
	// here, or whose StateKey was replaced by another, as long as the store remembers them: for
	// [TombstoneAge], and up to [MaxTombstones] of them.
	Import(ctx context.Context, agent Agent, sessions []Imported) (added int, err error)

	// Named returns the id of the agent's session with this StateKey, or [*NotFoundError].
	Named(ctx context.Context, agent Agent, stateKey string) (ID, error)

	// Retain removes the sessions that the agent once listed with their cwd (see Import) and that
	// its complete list l no longer contains, and returns their number. It deletes those that were
	// never opened, renamed or archived here. It keeps the others, but marks them as gone until the
	// agent lists them again or has another StateKey for them, or until they are moved or prompted.
	Retain(ctx context.Context, agent Agent, l Listed) (n int, err error)

	// Adopt stores a session that its agent knows, with an id that the caller chooses, as if it had
	// been imported and then activated. history, if not nil, becomes its history; see [Activation].
	// Another session with this StateKey loses it, as in SaveState. Adopt returns [ErrExists] if
	// the id is taken, and [*NotFoundError] if Import would skip the session.
	Adopt(ctx context.Context, agent Agent, s Imported, history Draft) (Lease, error)
}

// Restorer is the part of a [Store] from and to which sessions are copied.
type Restorer interface {
	// Restore stores a copy of a session from another store, except for its Generation. history, if
	// not nil, is a draft without an id that becomes its history; see [Activation]. charges are
	// what it has used. The copy replaces a session with the same id, and another session with its
	// StateKey loses that. But if either of these was used as recently as s, or more recently,
	// Restore changes nothing and returns false.
	Restore(
		ctx context.Context, s Session, history Draft, charges []Charge,
	) (stored bool, err error)

	// Deleted returns what the store remembers of deleted sessions, by agent.
	Deleted(ctx context.Context) (map[Agent][]Deleted, error)

	// RestoreDeleted makes the store remember the deleted sessions of another store. If this store
	// has a session with such a StateKey, RestoreDeleted deletes the session if it was imported and
	// never used, and otherwise keeps it and remembers nothing.
	RestoreDeleted(ctx context.Context, agent Agent, deleted []Deleted) error
}
