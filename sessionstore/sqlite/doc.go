// Package sqlite keeps sessions in one SQLite file that several processes share: an
// editor starts one program per window.
//
//	store := sqlite.New(sqlite.Options{Dir: stateDir})
//	defer store.Close()
//	lease, err := store.Create(ctx, session)
//
// # Files
//
// The directory holds sessions.db, with SQLite's sessions.db-wal and sessions.db-shm beside
// it while it is open, and sessions.lock, which orders the programs that open it. All
// are private to the user (clause S5). Nobody may open sessions.db by other means than SQLite while a program
// uses it: closing it again would drop SQLite's locks in that process.
//
// A [Store] never renames, replaces or repairs the file. What is wrong with it is a
// [*sessionstore.UnavailableError] that says what to do (S4). [Repair] is for when a person asks for it: it keeps
// the damaged file as sessions.damaged-TIME.db.
//
// # Concurrency
//
// A process has one connection that writes, and a few that read. Writers begin with the write lock
// (BEGIN IMMEDIATE), so a transaction that has begun does not meet another's; waiting
// for the lock happens in slices between which a context is heeded. A transaction that has begun is finished: it is short.
// Readers see a snapshot, and hold it for one page only (S9).
//
// # Durability
//
// What was committed survives the death of the process (S1). A power failure may
// lose the last commits, never the file. On network file systems the write-ahead log does
// not work; there SQLite's rollback journal is used, slower and just as safe.
//
// # Deleting
//
// Freed space is overwritten, given back to the file system, and the write-ahead log is
// emptied, so a deleted session's text is in none of the files (S10).
package sqlite
