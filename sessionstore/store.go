package sessionstore

import (
	"context"
	"iter"
)

// SessionBytes is what [Shared.Limit] counts for a session besides its history, states and Meta.
const SessionBytes = 1 << 10

// Store keeps sessions. Consumers take the part of it that they need.
//
// A Store is safe for concurrent use by goroutines and, if its medium is shared, by processes. The
// effect of a method that returned without error survives a crash of the process. A call whose
// context ended, or whose medium failed, has taken effect completely or not at all.
//
// Methods return [*NotFoundError], [*FencedError], [*CursorError], [*QuotaError], [ErrExists],
// [ErrDraft], [ErrClosed], the error of the context, and [*UnavailableError] if the medium fails.
//
// Creating a Store should cost nothing: an implementation opens its medium at the first call that
// needs it.
type Store interface {
	Sessions
	Histories
	Ledger
	Imports
	Copies

	// Prune deletes the sessions that q matches, and returns their number. Other writers may run in
	// between. If Prune fails, n sessions have already been deleted.
	Prune(ctx context.Context, q PruneQuery) (n int, err error)

	// Search returns the messages that contain all words of a text, the most recently indexed
	// first. It finds everything that was stored before the call, except that a store may leave out
	// the results of tools, and what follows the first 256 KiB of an update. The first search after
	// an update of the program may take long: it reads all histories.
	Search(ctx context.Context, q SearchQuery) ([]Found, error)

	// Close waits for running calls and closes the medium. Later calls return ErrClosed, except
	// Close.
	Close() error
}

// Shared is a Store for several owners: the principals who are connected to a server, and the local
// user, whose name is "". Its own methods are those of the local user's store.
type Shared interface {
	Store

	// For returns the store of an owner, whose name is UTF-8 without NUL. It has the same medium,
	// and costs nothing. For it, sessions of other owners do not exist: they are not listed or
	// found, their ids and StateKeys are free, and nothing that happens in one owner's store has an
	// effect in another's. Closing it does nothing, and a draft may be used in any store of its
	// owner.
	For(owner string) Store

	// Limit sets about how many bytes an owner's sessions may take, 0 for any number. Beyond it,
	// what begins a session or a turn, or adds to a draft, returns [*QuotaError]. It limits this
	// process, which finds within ten minutes what others have stored or deleted.
	Limit(owner string, bytes int)

	// Owners returns the names of all owners who have or had sessions, in order.
	Owners(ctx context.Context) ([]string, error)

	// Ping returns an error if the medium cannot be read or cannot be written. It reads without
	// waiting for other calls, and does not fail if ctx ends while others write.
	Ping(ctx context.Context) error
}

// Sessions is the part of a [Store] that opens, finds, changes and deletes sessions.
type Sessions interface {
	// Create stores a session without a history, which is listed from then on. Of s it uses ID,
	// Agent, Keys, Title, State and StateKey. It returns ErrExists if the id is taken.
	Create(ctx context.Context, s Session) (Lease, error)

	// Get returns the record of a session.
	Get(ctx context.Context, id ID) (Session, error)

	// List returns a page of sessions in the order of [Position]: the most recently active first.
	List(ctx context.Context, q Query) (Page, error)

	// Activate gives the session new roots and issues a new lease, in one transaction. This ends a
	// running turn, unless its holder continues it (see Activation.Held).
	Activate(ctx context.Context, id ID, a Activation) (Lease, error)

	// Move gives a session other roots and real paths, including its cwd, and issues a new lease:
	// processes that have the session open must load it again. Everything else remains the same.
	Move(ctx context.Context, l Lease, k Keys) (Lease, error)

	// Fork stores a session with the source's history up to its last finished turn and, if both
	// belong to the same agent, its latest states. The source does not change, and may be in a
	// turn. Fork uses the same of s as Create. It copies the title if that of s is "", and the
	// state if that of s is nil and both belong to the same agent. It never copies the StateKey:
	// the copied state belongs to the source until the fork saves its own.
	Fork(ctx context.Context, source ID, s Session) (Lease, error)

	// SaveState stores the state and the state key of a session; "" removes the key. Another
	// session with this key loses it. If that other session was imported and never used, it is the
	// same session, and is deleted.
	SaveState(ctx context.Context, l Lease, state []byte, key string) error

	// SetTitle sets the title; "" removes it. It does not change Updated, and does nothing after
	// Rename.
	SetTitle(ctx context.Context, l Lease, title string) error

	// Rename sets a title that a client chose, and marks the session as renamed (see [Session]). If
	// title is "", it removes the title and the mark. Unlike SetTitle, Rename needs no lease: any
	// session can be renamed. It does not change Updated.
	Rename(ctx context.Context, id ID, title string) error

	// Archive archives a session, and Unarchive undoes that. Only lists are affected; see
	// [ArchiveFilter].
	Archive(ctx context.Context, id ID) error
	Unarchive(ctx context.Context, id ID) error

	// Delete deletes a session. Its data may be erased from the medium later, but within a minute,
	// or when the last process closes the medium. Deleting a session that does not exist is not an
	// error.
	Delete(ctx context.Context, id ID) error
}

// Histories is the part of a [Store] that records what happens in sessions.
type Histories interface {
	// BeginTurn records the start of a turn and its prompt, before the backend acts, and returns
	// the turn's number. It ends running turns, unless t overlaps them.
	BeginTurn(ctx context.Context, l Lease, t Turn) (number int64, err error)

	// Append adds a segment of updates to the history, and stores the latest update of each state
	// kind among them. Either all are stored or none. An empty segment only checks the lease.
	Append(ctx context.Context, l Lease, segment []Update) error

	// EndTurn records the end of the turn with this number, and adds its last updates, such as
	// [TurnEnded], to the history. If it is not running, EndTurn only checks the lease, so that it
	// can be repeated after an error.
	EndTurn(ctx context.Context, l Lease, number int64, last ...Update) error

	// TakeBackTurn removes the turn with this number, which BeginTurn started with t: its prompt,
	// its number, and the title that it gave the session. It reports false, and does nothing,
	// unless that turn alone is running and is all that was stored since it began.
	TakeBackTurn(ctx context.Context, l Lease, number int64, t Turn) (taken bool, err error)

	// History yields the history in order. It reads in pages, and holds no resources of the store
	// in between. It yields the history as stored when the iteration starts, without later appends.
	// It ends with *NotFoundError if the session is deleted. The caller may modify the updates.
	History(ctx context.Context, id ID) iter.Seq2[Update, error]

	// Segments is like History, but yields the segments that the history is stored in,
	// from the first one whose number is greater than after.
	Segments(ctx context.Context, id ID, after int64) iter.Seq2[Segment, error]

	// Finished is like History, but ends with the last finished turn. This is the part that Fork
	// copies. Turns that overlap are finished when all of them have ended.
	Finished(ctx context.Context, id ID) iter.Seq2[Update, error]

	// States returns the latest update of each state kind, in the order of [StateKinds].
	States(ctx context.Context, id ID) ([]Update, error)

	// NewDraft starts a draft, which an activation can add to the session's history. If id is "",
	// it is for [Imports.Adopt] or [Copies.Restore].
	NewDraft(ctx context.Context, id ID) (Draft, error)
}

// Ledger is the part of a [Store] that keeps what agents report to have used, which is deleted with
// its session. A fork by the same agent begins with the latest readings of its source, whose
// amounts are 0.
type Ledger interface {
	// Charge adds what a session has used. Either all charges are stored or none.
	Charge(ctx context.Context, l Lease, charges []Charge) error

	// Account returns what is needed to go on counting what a session uses.
	Account(ctx context.Context, id ID) (Account, error)

	// Charges returns what a session has used, in the order in which it was added.
	Charges(ctx context.Context, id ID) ([]Charge, error)

	// Sums returns the sums of the charges that q selects: of each session, meter, unit and mark.
	// The time of a sum is that of its first charge. Source and Reading are empty.
	Sums(ctx context.Context, q ChargeQuery) ([]Charge, error)
}

// Imports is the part of a [Store] for sessions that an agent keeps itself.
type Imports interface {
	// Import stores sessions from an agent's own list, in their order, and returns the number of
	// new ones. Of a session it uses ID, Keys, Title, Updated, Archived, Meta, State and StateKey,
	// the agent's name for it, which is not empty. If one is invalid, it stores none. A new session
	// gets its ID and an empty history. If Updated is zero, it is now. For a known session (by
	// StateKey), Import updates Updated if it is later, Meta, and the title, unless the session was
	// renamed or is unused: a title that the agent took from the first prompt, or gives all new
	// sessions, replaces none. It does not change whether a known session is archived. An unused
	// session that the agent lists with later activity counts as imported from then on; see
	// [UnusedGrace]. A time more than a day in the future counts as unknown, and an earlier one
	// replaces it.
	//
	// With onlyKnown it skips sessions that the store does not have, and the others do not count as
	// listed, so that Retain never removes them. In any case it skips sessions that were deleted
	// here, or whose StateKey was replaced by another: the store remembers the last 10,000.
	Import(
		ctx context.Context, agent Agent, sessions []Session, onlyKnown bool,
	) (added int, err error)

	// Named returns the id of the agent's session with this StateKey, or [*NotFoundError].
	Named(ctx context.Context, agent Agent, stateKey string) (ID, error)

	// Retain removes the sessions that the agent once listed with their cwd (see Import) and that
	// its complete list l no longer contains, and returns their number. It deletes those that were
	// never opened, renamed or archived here. It keeps the others, but marks them as gone until the
	// agent lists them again or has another StateKey for them, or until they are moved or prompted.
	Retain(ctx context.Context, agent Agent, l Listed) (n int, err error)

	// Adopt stores a session that its agent knows, with an id that the caller chooses, as if it had
	// been imported, see Import, and then activated. history, if not nil, becomes its history; see
	// [Activation]. Another session with this StateKey loses it, as in SaveState. Adopt returns
	// [ErrExists] if the id is taken, and [*NotFoundError] if Import would skip the session.
	Adopt(ctx context.Context, s Session, history Draft) (Lease, error)
}

// Copies is the part of a [Store] for copies of sessions from another store.
type Copies interface {
	// Restore stores a copy of a session from another store, except for its Generation. history, if
	// not nil, is a draft without an id that becomes its history; see [Activation]. charges are
	// what it has used. The copy replaces a session with the same id, and another session with its
	// StateKey loses that. But if either of these was used as recently as s, or more recently,
	// Restore changes nothing and returns false.
	Restore(
		ctx context.Context, s Session, history Draft, charges []Charge,
	) (stored bool, err error)

	// Deleted returns what the store remembers of deleted sessions, by agent, so that Import skips
	// them: the SHA-256 of each StateKey.
	Deleted(ctx context.Context) (map[Agent][][]byte, error)

	// RestoreDeleted makes the store remember the deleted sessions of another store. If this store
	// has a session with such a StateKey, RestoreDeleted deletes the session if it was imported and
	// never used, and otherwise keeps it and remembers nothing.
	RestoreDeleted(ctx context.Context, agent Agent, names [][]byte) error
}

// Draft is a part of a history that is stored as it arrives. It becomes visible when an
// [Activation] adds it to the end of the history, which nothing replaces. A store deletes
// a draft together with its session, or some time after the draft's process has died. It must not
// be used concurrently.
type Draft interface {
	// Append adds a segment, like [Histories.Append].
	Append(ctx context.Context, segment []Update) error
	// Discard deletes the draft. After an activation with the draft it does nothing.
	Discard(ctx context.Context) error
}
