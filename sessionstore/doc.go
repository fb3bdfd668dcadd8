// Package sessionstore keeps sessions and their histories.
//
// [Store] is the interface. Package sessionstore/sqlite implements it, in a file or in memory, and
// package sessionstore/postgres in a database that several servers share. They have every rule and
// statement once, in sessionstore/internal/core. A program that wants a store to do something else
// wraps it: it embeds a [Store] in a struct with the methods that differ.
//
// Create, Activate and Fork return a [Lease]: the session's id and a generation number. Every write
// names its lease, and fails once a newer one was issued, by this process or another. If two
// windows open the same session, the newer one wins, and their histories never interleave.
//
// A history consists of the session/update notifications that the client received, in order, as
// [Update] values. A turn's prompt is recorded before its answer, as user_message_chunk updates. Of
// the kinds that describe a state rather than an event, only the latest is kept, see [StateKinds];
// notices and prompt suggestions are not kept; unknown kinds are events. A [Recorder] groups
// updates into segments, which are stored together, and joins neighbouring text chunks.
//
// A session is found by its roots as the client spelled them, or by their real paths as of its last
// activation: see [Keys].
package sessionstore
