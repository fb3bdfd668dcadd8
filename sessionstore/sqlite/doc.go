// Package sqlite keeps sessions in a SQLite file that several processes share: an editor starts one
// program per window.
//
//	store := sqlite.New(sqlite.Options{Dir: stateDir})
//	defer store.Close()
//	lease, err := store.Create(ctx, session)
//
// While a process uses sessions.db, it must not open the file except through SQLite: closing it
// again would release SQLite's locks in that process. A [Store] never renames, replaces or repairs
// the file. If something is wrong with it, every call fails with a
// [*sessionstore.UnavailableError] that says what to do, before anything more is acknowledged.
// [Repair] runs only if a person asks for it.
//
// A write begins with the write lock, so it cannot conflict with another one later. A call that
// waits for the lock can be cancelled; a transaction that has begun is short and runs to its end.
// Readers see a snapshot, and hold it for one page only.
//
// Everything that was committed survives a crash of the process. A power failure may lose the last
// few commits but does not corrupt the file. On network file systems, where the write-ahead log
// does not work, the rollback journal is used, which is slower but just as safe.
//
// A delete returns when the session's row is gone. Its history is purged soon after, a few rows at
// a time, which secure_delete overwrites. SQLite leaves traces where it has moved rows: the last
// process that closes a file of up to 64 MiB rewrites it.
package sqlite
