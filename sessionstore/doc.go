// Package sessionstore keeps sessions and their histories.
//
// [Store] is the interface; sessionstore/sqlite is the one that the program uses,
// [Memory] is for tests and for hosts that keep nothing. sessionstore/storetest is the
// contract as a test suite: whoever writes another Store runs it.
//
// # Who may write
//
// Opening a session (create, activate, fork) hands out a [Lease]: the session's id and a
// generation number. Every write names its lease and is refused with [*FencedError]
// once a newer one was handed out, by this process or another, and with
// [*NotFoundError] once the session was deleted. So of two windows on one session the newer
// wins, and histories never interleave (clauses S3, S8).
//
// # What a history is
//
// A history is the session/update notifications that the client was shown, in order, as
// [Update] values: params without sessionId. A turn's prompt is recorded
// before its answer, as user_message_chunk updates. Kinds that describe a state, not an
// event (commands, mode, options, usage), are kept only as the latest of each kind. Kinds nobody
// knows are history. Several updates are stored together as one segment; a
// [Recorder] does the grouping, and the merging of neighbouring text chunks.
//
// # Two keys
//
// A session is found by the spelling of its roots, or by their real paths
// as of its last activation (clause A17). Both are kept as [Keys].
//
// # For whoever writes another Store
//
// [Split] says what of a segment is history and what is a state, [Query.From] and
// [Query.After] read and make cursors, [Keys.WithCwd] says what an activation keeps.
package sessionstore
