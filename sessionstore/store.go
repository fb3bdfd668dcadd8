package sessionstore

import (
	"context"
	"iter"
)

// Store keeps sessions. Consumers take the part of it that they need.
//
// A Store is safe for concurrent use by goroutines and, if its medium is shared, by processes. The
// effect of a method that returned without error survives a crash of the process. A call whose
// context ended has taken effect completely or not at all.
//
// Methods return [*NotFoundError], [*FencedError], [*CursorError], [ErrExists], [ErrDraft],
// [ErrClosed], the error of the context, and [*UnavailableError] if the medium fails.
//
// Creating a Store should cost nothing: an implementation opens its medium at the first call that
// needs it.
type Store interface {
	Sessions
	Titles
	Histories
	Archiver
	Importer
	Ledger
	Mover
	Pruner
	Restorer
	Searcher
	Segmenter
	Sizer
	Watcher

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

	// Owners returns the names of all owners who have or had sessions, in order.
	Owners(ctx context.Context) ([]string, error)

	// Ping returns an error if the medium cannot be used. It does not wait for other calls.
	Ping(ctx context.Context) error
}

// Sessions is the part of a [Store] that opens, finds and deletes sessions.
type Sessions interface {
	// Create stores a session, which is listed from then on. It returns ErrExists if the id is
	// taken.
	Create(ctx context.Context, s NewSession) (Lease, error)

	// Get returns the record of a session.
	Get(ctx context.Context, id ID) (Session, error)

	// List returns a page of sessions in the order of [Position]: the most recently active first.
	List(ctx context.Context, q Query) (Page, error)

	// Activate gives the session new roots and issues a new lease, in one transaction. This ends a
	// running turn, unless its holder continues it (see Activation.Held).
	Activate(ctx context.Context, id ID, a Activation) (Lease, error)

	// Fork stores a session with the source's history up to its last finished turn and, if both
	// belong to the same agent, its latest states. The source does not change, and may be in a
	// turn.
	Fork(ctx context.Context, source ID, s NewSession) (Lease, error)

	// SaveState stores the state and the state key of a session; "" removes the key. Another
	// session with this key loses it. If that other session was imported and never used, it is the
	// same session, and is deleted.
	SaveState(ctx context.Context, l Lease, state []byte, key string) error

	// Delete deletes a session. Its data may be erased from the medium later, but within a minute,
	// or when the last process closes the medium. Deleting a session that does not exist is not an
	// error.
	Delete(ctx context.Context, id ID) error
}

// Titles is the part of a [Store] that changes the titles of sessions.
type Titles interface {
	// SetTitle sets the title; "" removes it. It does not change Updated, and does nothing after
	// Rename.
	SetTitle(ctx context.Context, l Lease, title string) error

	// Rename sets a title that a client chose, and marks the session as renamed (see [Session]). If
	// title is "", it removes the title and the mark. Unlike SetTitle, Rename needs no lease: any
	// session can be renamed. It does not change Updated.
	Rename(ctx context.Context, id ID, title string) error
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
	// its number, and the title that it gave the session. It reports false, and does nothing, unless
	// that turn alone is running and is all that was stored since it began.
	TakeBackTurn(ctx context.Context, l Lease, number int64, t Turn) (taken bool, err error)

	// History yields the history in order. It reads in pages, and holds no resources of the store
	// in between. It yields the history as stored when the iteration starts, without later appends.
	// It ends with *NotFoundError if the session is deleted. The caller may modify the updates.
	History(ctx context.Context, id ID) iter.Seq2[Update, error]

	// Finished is like History, but ends with the last finished turn. This is the part that Fork
	// copies. Turns that overlap are finished when all of them have ended.
	Finished(ctx context.Context, id ID) iter.Seq2[Update, error]

	// States returns the latest update of each state kind, in the order of [StateKinds].
	States(ctx context.Context, id ID) ([]Update, error)

	// NewDraft starts a draft, which an activation can add to the session's history. If id is "",
	// it is for [Importer.Adopt] or [Restorer.Restore].
	NewDraft(ctx context.Context, id ID) (Draft, error)
}

// Draft is a part of a history that is stored as it arrives. It becomes visible when an
// [Activation] adds it to the end of the session's history, which nothing replaces. A store deletes
// a draft together with its session, or some time after the draft's process has died. It must not
// be used concurrently.
type Draft interface {
	// Append adds a segment, like [Histories.Append].
	Append(ctx context.Context, segment []Update) error
	// Discard deletes the draft. After an activation with the draft it does nothing.
	Discard(ctx context.Context) error
}
