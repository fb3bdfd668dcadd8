// Package sessionstore keeps sessions and their histories.
//
// [Store] is the interface. Package sessionstore/sqlite implements it, in a file or in memory, and
// package sessionstore/postgres in a database that several servers share.
//
// # Who may write
//
// Create, Activate and Fork return a [Lease]: the session's id and a generation number. Every write
// names its lease. It fails with [*FencedError] once a newer lease was issued, by this process or
// another, and with [*NotFoundError] once the session was deleted. If two windows open the same
// session, the newer one wins, and their histories never interleave.
//
// # Whose a session is
//
// A [Shared] store has a [Store] for each owner. Owners never see each other's sessions.
//
// # What a history is
//
// A history consists of the session/update notifications that the client received, in order, as
// [Update] values. A turn's prompt is recorded before its answer, as user_message_chunk updates. Of
// the kinds that describe a state rather than an event (commands, mode, options, usage) only the
// latest is kept, see [StateKinds]; notices and prompt suggestions are not kept; unknown kinds are
// events. A [Recorder] groups updates into segments, which are stored together, and joins
// neighbouring text chunks.
//
// # How a session is found
//
// A session is found by its roots as the client spelled them, or by their real paths as of its last
// activation. Both are kept as [Keys].
//
// A [Searcher] also finds what was said in sessions, by its words.
//
// # Where sessions are
//
// Every rule and statement is once in sessionstore/internal/core. The packages of databases open
// one, and explain its errors. A program that wants a store to do something else wraps it: it
// embeds a [Store] in a struct with the methods that differ. Drafts belong to the store that made
// them, so NewDraft passes them on as they are.
package sessionstore
