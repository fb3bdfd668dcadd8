package sessionstore

import (
	"context"
	"iter"
	"time"
)

// ID names a session. It is opaque, and unique in a store.
type ID string

// Agent is whom a session belongs to (clause A31).
type Agent struct {
	// Kind is the runtime's kind, Profile the agent behind it, "" if there is none.
	Kind, Profile string
}

// Session is a session's record.
type Session struct {
	ID    ID
	Agent Agent
	Keys  Keys
	// Title is one line, "" until there is one.
	Title string
	// Created and Updated are UTC, to the millisecond. Updated changes with create, fork, and
	// the start and end of a turn (clause A29).
	Created, Updated time.Time
	// Generation is that of the newest lease. Generations are never used twice in a store, so
	// that a lease of a deleted session does not fit another of the same id.
	Generation int64
	// State is the runtime's own value, nil if none.
	State []byte
	// StateKey is what the runtime calls the session that State names, "" if it names none. No other session of
	// the agent has the same.
	StateKey string
	// Turns is the number of turns that were begun; a fork starts with its source's finished ones.
	Turns int64
}

// Lease is the right to write to a session until a newer one is handed out.
type Lease struct {
	ID         ID
	Generation int64
}

// NewSession is what a session starts with.
type NewSession struct {
	ID    ID
	Agent Agent
	Keys  Keys
	// State is the runtime's own value. In a fork nil copies the source's.
	State []byte
	// StateKey is what the runtime calls the session that State names, "" if it names none. A fork does not
	// copy it: its state names the source's until it saves its own.
	StateKey string
	// Title is one line. In a fork "" copies the source's.
	Title string
}

// Activation is what a load or resume changes.
type Activation struct {
	// Keys are the session's new roots and real paths. The spelling of cwd on record stays:
	// it is the session's from new or fork on (A17), and [Keys.WithCwd] says what becomes of the rest.
	Keys Keys
	// Held, if not 0, is the generation of the lease that the caller holds. The activation then happens only
	// if that is still the newest, else it is a [*FencedError]: a holder that was fenced meanwhile does not go
	// on with a newer lease, and so never writes after what it has not seen (S3). A turn that runs under it
	// goes on under the new lease, until EndTurn; unless History replaces it.
	Held int64
	// State replaces the runtime's value, and StateKey what the runtime calls the session; a nil State leaves both.
	State    []byte
	StateKey string
	// History, if not nil, replaces the stored history in the same step (clause P7); state
	// kinds in it are stored as such, others on record stay. It counts as finished turns. A [ErrDraft]
	// refuses what is no draft of this store; a refused activation leaves the draft as it was.
	History Draft
}

// Turn is the start of a turn.
type Turn struct {
	// Prompt is the prompt as updates (user_message_chunk), in order.
	Prompt []Update
	// Title becomes the session's title if it has none.
	Title string
}

// StopReason is how a turn ended, as the client was told; "" for a turn that ended with an error.
type StopReason string

// Store keeps sessions. It is safe for concurrent use, by goroutines and, where its
// medium is shared, by processes. What a method returned without error survives the death of the
// process (clause S1). A call whose context ended either did its work or did nothing.
// Errors: [*NotFoundError], [*FencedError], [ErrExists], [*CursorError], [ErrDraft];
// [*UnavailableError] when the medium fails, which names the file and what to do; or the
// context's.
//
// An implementation opens its medium at the first call that needs it, so that making
// a Store costs nothing.
type Store interface {
	// Create stores a session. It is listed from then on (A19). [ErrExists] if
	// the id is taken.
	Create(ctx context.Context, s NewSession) (Lease, error)

	// Get returns a session's record.
	Get(ctx context.Context, id ID) (Session, error)

	// Activate gives the session its new roots and a new generation, in one step; older
	// leases are fenced. A turn that was left open ends with it, unless its holder goes on with it (Held).
	Activate(ctx context.Context, id ID, a Activation) (Lease, error)

	// NewDraft starts a history for an activation of the session. It shows nowhere until then, and goes with the session.
	NewDraft(ctx context.Context, id ID) (Draft, error)

	// BeginTurn durably records a turn's start and its prompt before the runtime acts (S8).
	// A turn that was left open ends with it.
	BeginTurn(ctx context.Context, l Lease, t Turn) error

	// Append adds one segment of updates to the history, and stores the latest of each
	// state kind among them, as [Split] tells them apart. All are stored or none. An empty segment only
	// checks the lease.
	Append(ctx context.Context, l Lease, segment []Update) error

	// EndTurn records the end of the running turn. Without one it only checks the lease, so
	// that it may be repeated after an error.
	EndTurn(ctx context.Context, l Lease, reason StopReason) error

	// SetTitle sets the title; "" removes it. Updated does not change.
	SetTitle(ctx context.Context, l Lease, title string) error

	// SaveState stores the runtime's own value, and what the runtime calls the session that it names, "" if
	// it names none. A session that was called so before is not any more; if it was imported and never
	// used, it is the same session, and goes.
	SaveState(ctx context.Context, l Lease, state []byte, key string) error

	// Check returns nil if the lease is still the newest.
	Check(ctx context.Context, l Lease) error

	// History yields the history in order, in pages: between two of them nothing of the store is held
	// (S9). It yields what is stored when it is ranged over, and does not see later appends. An
	// activation that replaces the history ends it with [ErrReplaced], a delete with [*NotFoundError].
	// The updates are the caller's.
	History(ctx context.Context, id ID) iter.Seq2[Update, error]

	// Finished is History up to the last finished turn, which is what Fork copies (A14).
	Finished(ctx context.Context, id ID) iter.Seq2[Update, error]

	// States returns the latest update of each state kind, in the order commands, mode, options, usage.
	States(ctx context.Context, id ID) ([]Update, error)

	// List returns a page of sessions: newest activity first, of equals the greater id first (A18).
	List(ctx context.Context, q Query) (Page, error)

	// Fork stores a session with the source's history up to its last finished turn
	// and its latest states (A14). The source is not changed, and may be in a turn.
	Fork(ctx context.Context, source ID, s NewSession) (Lease, error)

	// Import takes over what a runtime says of the sessions that it knows by itself, all or nothing. One that is new
	// gets the id it comes with, and an empty history. Of one that is known (StateKey) only a title and a later Updated are
	// taken over. One that was deleted, or given up for another (a session's StateKey was replaced by another), is skipped
	// for as long as the store remembers it: [TombstoneAge], or [MaxTombstones] others. It returns how many were new.
	Import(ctx context.Context, agent Agent, sessions []Imported) (added int, err error)

	// Delete removes a session for good: its bytes are gone from the medium (S10). One
	// that does not exist is no error. Its leases are answered with *NotFoundError. If the runtime has a name for it,
	// Import does not bring it back.
	Delete(ctx context.Context, id ID) error

	// Prune deletes the sessions that q matches, and returns how many there were. It cleans the
	// medium once for all of them, and may let other writers in between two batches: after an error n are deleted.
	Prune(ctx context.Context, q PruneQuery) (n int, err error)

	// Close frees the medium, after the calls that run. Calls after it fail with [ErrClosed]; a second Close does nothing.
	Close() error
}

// Draft is a history on its way: segments that are stored as they come, however many, and that nobody sees
// until an [Activation] puts them in the place of a session's history (clause P7). A draft that comes to
// nothing is discarded; one whose process died, the store drops by and by. It is used by one goroutine at a time.
type Draft interface {
	// Append adds a segment, as [Store.Append] does.
	Append(ctx context.Context, segment []Update) error
	// Discard drops what was added. After an activation with the draft it does nothing.
	Discard(ctx context.Context) error
}
