// Package sqlite keeps sessions in a SQLite file that several processes share: an editor starts one
// program per window.
//
//	store := sqlite.New(sqlite.Options{Dir: stateDir})
//	defer store.Close()
//	lease, err := store.Create(ctx, session)
//
// [NewMemory] returns a store in memory.
//
// # Files
//
// The directory contains sessions.db, SQLite's sessions.db-wal and sessions.db-shm while it is
// open, and sessions.lock, which serialises the processes that open it. All are accessible to the
// user only; files with other permissions are made so, with a warning. While a process uses
// sessions.db, it must not open the file except through SQLite: closing it again would release
// SQLite's locks in that process.
//
// A [Store] never renames, replaces or repairs the file. If something is wrong with it, every call
// fails with a [*sessionstore.UnavailableError] that says what to do. [Repair] runs only if a
// person asks for it: it copies what can be read, and keeps the damaged file as
// sessions.damaged-TIME.db. It works on copies in sessions.repair-*; if it is killed, the next
// program that opens the store, or the next that erases deleted sessions, removes them.
//
// # Concurrency
//
// A process has one connection that writes, and a few that read. A write starts by acquiring the
// write lock (BEGIN IMMEDIATE), so it cannot conflict with another one later. A call that waits for
// the lock can be cancelled. A transaction that has started is short and always runs to its end.
// Readers see a snapshot, and hold it for one page only.
//
// # Durability
//
// Everything that was committed survives a crash of the process. A power failure may lose the last
// few commits but does not corrupt the file. On network file systems, where the write-ahead log
// does not work, the rollback journal is used, which is slower but just as safe.
//
// # Deleting
//
// A delete returns when the session's row is gone, however long its history is. From then on
// nothing returns the session. Its history, and the copies that deleted rows leave in the file and
// its log, are erased a few seconds later, in pieces that hold the write lock for some
// milliseconds, or when the store is closed. The file records that there is something to erase, so
// if a program is killed, the next one continues. The log stays short in that time, because erasing
// waits for readers that need it.
//
// # Searching
//
// A message is in the full-text index when its turn has ended, in the same transaction. A search
// first adds what is missing: a running turn, and histories that a repair stored. The index does
// not contain the results of tools. Words are erased from it with the history, with one exception:
// the first word of a page of the index, or its first letters, may stay in the page above until the
// index is rewritten. This does not show where the word occurred.
//
// # Schema
//
// The file in schema creates the tables; a later version is a further file beside it. A history is
// stored in segments of several updates. The segments of a session form a strand; a fork shares its
// source's strand up to the fork (table inherits), and continues in its own strand.
package sqlite
