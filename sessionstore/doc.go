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
// # Implementing a Store
//
// A Store on another medium is a package beside sessionstore/sqlite. The program opens its store in
// cmd/acp-agent. It implements [Store], and of the optional interfaces those that its medium can
// serve: [Importer], [Archiver], [Ledger], [Mover], [Pruner], [Restorer], [Segmenter], [Searcher],
// [Sizer] and [Watcher]. Each says what does not work without it. Consumers take the part of [Store] that they
// need ([Sessions], [Titles] or [Histories]), and look for others with [As]. The program acp-agent
// also needs [Shared].
//
// These functions make sure that all stores keep the same things:
//
//   - [Split] separates the updates that are history from those that are states, and leaves out
//     those that are neither.
//   - [StoredUpdate] turns stored JSON into an Update again.
//   - [Pack] and [Unpack] make segments of a history.
//   - [Query.From] and [Query.After] read and make cursors, [Query.Size] is the size of a page,
//     [Position] the order of a list.
//   - [NewSession.Validate], [Imported.Validate], [Agent.Validate] and [Keys.Validate] check
//     arguments; [Keys.WithCwd] computes the keys after an activation.
//   - [ValidateCharges] checks charges, and [ChargeQuery.Bounds] has what a query compares.
//   - [CleanTitle] makes a title text. Ids and agents are text. So are paths. Other values may be
//     any bytes.
//   - [Passages] are what a [Searcher] indexes, [SearchQuery.Terms] what it looks for, and [Words]
//     how both are compared. [BestLine] and [SearchQuery.Matches] make a [Found].
//
// What the stores of this module decide alike is in sessionstore/internal/rules, and whose turn it
// is to use one in sessionstore/internal/fair.
//
// Package sessionstore/storetest tests a Store; its function TestShared tests several stores on one
// database:
//
//	func TestContract(t *testing.T) {
//		storetest.Test(t, func(t *testing.T) sessionstore.Store {
//			s := mystore.New(t.TempDir())
//			t.Cleanup(func() { s.Close() })
//			return s
//		})
//	}
package sessionstore
