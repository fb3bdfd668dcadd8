package sessionstore

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// ID names a session. It is opaque, and unique in a store.
type ID string

// Update is the params of one session/update notification without sessionId: an
// object with the member "update". It holds no newline.
type Update = json.RawMessage

// Agent is whom a session belongs to (clause A31).
type Agent struct {
	// Kind is the runtime's kind, Profile the agent behind it, "" if there is none.
	Kind, Profile string
}

// Keys are what a session is found by (clause A17).
type Keys struct {
	// Roots is the root set as the client spelled it.
	Roots workspace.Roots
	// Real is the same set by real paths when it was opened: the same length and order
	// as Roots with its duplicates kept, cwd first.
	Real []workspace.Dir
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
	// Generation is that of the newest lease.
	Generation int64
	// State is the runtime's own value, nil if none.
	State []byte
	// Turns is the number of turns that were begun.
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
	State []byte
	Title string
}

// Activation is what a load or resume changes.
type Activation struct {
	Keys Keys
	// State replaces the runtime's value; nil leaves it.
	State []byte
	// History, if not nil, replaces the stored history in the same step (clause P7). It
	// counts as finished turns.
	History []Update
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
// process (clause S1). Errors: [*NotFoundError], [*FencedError], [*ExistsError],
// [*CursorError]; [*UnavailableError] when the medium fails, which names the file and
// what to do; or the context's.
//
// An implementation opens its medium at the first call that needs it, so that making
// a Store costs nothing.
type Store interface {
	// Create stores a session. It is listed from then on (A19). *ExistsError if
	// the id is taken.
	Create(ctx context.Context, s NewSession) (Lease, error)

	// Get returns a session's record.
	Get(ctx context.Context, id ID) (Session, error)

	// Activate gives the session its new roots and a new generation, in one step; older
	// leases are fenced. A turn that was left open ends with it.
	Activate(ctx context.Context, id ID, a Activation) (Lease, error)

	// BeginTurn durably records a turn's start and its prompt before the runtime acts (S8).
	BeginTurn(ctx context.Context, l Lease, t Turn) error

	// Append adds one segment of updates to the history, and stores the latest of each
	// state kind among them. An empty segment only checks the lease.
	Append(ctx context.Context, l Lease, segment []Update) error

	// EndTurn records the end of the running turn.
	EndTurn(ctx context.Context, l Lease, reason StopReason) error

	// SetTitle sets the title; "" removes it. Updated does not change.
	SetTitle(ctx context.Context, l Lease, title string) error

	// SaveState stores the runtime's own value.
	SaveState(ctx context.Context, l Lease, state []byte) error

	// Check returns nil if the lease is still the newest.
	Check(ctx context.Context, l Lease) error

	// History yields the history in order, in pages: between two of them nothing of the store is held
	// (S9). It starts with what is stored when it is ranged over, and does not see later appends. An
	// activation that replaces the history, or a delete, ends it with an error.
	History(ctx context.Context, id ID) iter.Seq2[Update, error]

	// States returns the latest update of each state kind, in the order commands, mode, options, usage.
	States(ctx context.Context, id ID) ([]Update, error)

	// List returns a page of the agent's sessions: newest activity first, ties by id (A18).
	List(ctx context.Context, q Query) (Page, error)

	// Fork stores a session with the source's history up to its last finished turn
	// and its latest states (A14). The source is not changed, and may be in a turn.
	Fork(ctx context.Context, source ID, s NewSession) (Lease, error)

	// Delete removes a session for good: its bytes are gone from the medium (S10). One
	// that does not exist is no error. Its leases are answered with *NotFoundError.
	Delete(ctx context.Context, id ID) error

	// Close frees the medium. Calls after it fail.
	Close() error
}

// stateKinds are the update kinds of which only the latest is kept, in the order of States.
var stateKinds = [...]string{
	"available_commands_update", "current_mode_update", "config_option_update", "usage_update",
}
