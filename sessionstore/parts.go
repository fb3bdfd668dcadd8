package sessionstore

import (
	"context"
	"errors"
	"iter"
	"reflect"
)

// As returns a store as one of the optional interfaces, or the store that it wraps. A store that
// wraps another one says so with a method Unwrap() Store. The error is an [*UnsupportedError].
func As[Part any](s Store) (Part, error) {
	for {
		if part, ok := s.(Part); ok {
			return part, nil
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			var none Part
			return none, &UnsupportedError{Part: reflect.TypeFor[Part]().Name()}
		}
		s = wrapper.Unwrap()
	}
}

// UnsupportedError is returned for what a [Store] cannot do. It is an [errors.ErrUnsupported].
type UnsupportedError struct {
	// Part is the name of the interface that the store lacks, such as "Importer".
	Part string
}

func (e *UnsupportedError) Error() string {
	return "this session store cannot do that: it is no sessionstore." + e.Part
}

// Is reports whether target is [errors.ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Archiver is a [Store] that can archive sessions. Without it no session is archived, and clients
// are not offered session/archive.
type Archiver interface {
	// Archive archives a session, and Unarchive undoes that. Only lists are affected; see
	// [ArchiveFilter].
	Archive(ctx context.Context, id ID) error
	Unarchive(ctx context.Context, id ID) error
}

// Mover is a [Store] that can move sessions to other roots. Without it "acp-agent sessions move"
// fails.
type Mover interface {
	// Move gives a session other roots and real paths, including its cwd, and issues a new lease:
	// whoever has the session open must load it again. Nothing else changes.
	Move(ctx context.Context, l Lease, k Keys) (Lease, error)
}

// Pruner is a [Store] that can delete many old sessions. Without it "acp-agent sessions prune"
// fails.
type Pruner interface {
	// Prune deletes the sessions that q matches, and returns their number. Other writers may run in
	// between. If Prune fails, n sessions have already been deleted.
	Prune(ctx context.Context, q PruneQuery) (n int, err error)
}

// SessionBytes is what a [Sizer] counts for a session besides its history and its states.
const SessionBytes = 1 << 10

// Sizer is a [Store] that knows how much it stores. Without it users of a server have no quota.
type Sizer interface {
	// Size returns about how many bytes the sessions of the store's owner take, without those that
	// were deleted, even if their data was not erased yet.
	Size(ctx context.Context) (bytes int, err error)
}

// Segmenter is a [Store] whose histories can be read from a place in their middle. Without it
// "acp-agent inspect" shows no conversations.
type Segmenter interface {
	// Segments is like [Histories.History], but yields the segments that the history is stored in,
	// from the first one whose number is greater than after.
	Segments(ctx context.Context, id ID, after int64) iter.Seq2[Segment, error]
}

// Watcher is a [Store] that announces what other processes do with a session. Without it a process
// learns that it has lost a session when it next writes to it.
type Watcher interface {
	// Watch returns a channel that receives a value at the beginning, and whenever the session may
	// have a newer lease or may have been deleted. It may receive further values; use an empty
	// Append to find out what has happened. The caller calls stop when it no longer reads the
	// channel.
	Watch(id ID) (changed <-chan struct{}, stop func())
}

// Importer is a [Store] for sessions that an agent keeps itself. Without it, lists have only the
// sessions that were made through the store, and others cannot be opened.
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

// Restorer is a [Store] from and to which sessions can be copied. Without it "acp-agent sessions
// copy" fails.
type Restorer interface {
	// Restore stores a copy of a session from another store, except for its Generation. history, if
	// not nil, is a draft without an id that becomes its history; see [Activation]. A [Ledger] also
	// stores what it has used; other stores ignore charges. The copy replaces a session with the same id, and another session with its StateKey loses that. But if
	// either of these was used as recently as s, or more recently, Restore changes nothing and
	// returns false.
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
