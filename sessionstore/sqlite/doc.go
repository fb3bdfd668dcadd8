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
// sessions.db it may open the file only through SQLite: closing it again would release SQLite's
// locks in that process.
//
// A [Store] never renames, replaces or repairs the file. If something is wrong with it, every call
// fails with a [*sessionstore.UnavailableError] that says what to do. [Repair] is for a person to
// request: it copies what can be read, and keeps the damaged file as sessions.damaged-TIME.db. It
// works on copies in sessions.repair-*; if it is killed, the next program that opens the store, or
// the next that erases deleted sessions, removes them.
//
// # Concurrency
//
// A process has one connection that writes, and a few that read. A write starts by acquiring the
// write lock (BEGIN IMMEDIATE), so it never conflicts with another later. A call that waits for the
// lock can be cancelled; a transaction that has started is short, and completed. Readers see a
// snapshot, and hold it for one page only.
//
// # Durability
//
// Everything that was committed survives a crash of the process. A power failure may lose the last
// few commits but does not corrupt the file. On network file systems, where the write-ahead log
// does not work, the rollback journal is used, which is slower and as safe.
//
// # Deleting
//
// A delete answers when the session's row is gone, however long its history is. From then on
// nothing returns the session. Its history, and the copies that deleted rows leave in the file and
// its log, are erased a few seconds later, in pieces that hold the write lock for some
// milliseconds, or when the store is closed. The file remembers that this is to be done, so the
// next program does what a killed one left. The log stays short meanwhile: erasing waits for
// readers that keep it.
//
// # Searching
//
// A message is in the full-text index when its turn has ended, in the same transaction. A search
// first adds what is missing: a running turn, and what an older program or a repair stored. The
// index does not contain what tools returned. Words are erased from it with the history, except
// that a word with which a page of the index begins, or the first letters of it, may stay in the
// page above until the index is rewritten, without saying where it occurred.
//
// # Schema
//
// See schema/*.sql. A history is stored in segments of several updates. The segments of a session
// form a strand; a fork shares its source's strand up to the fork (table inherits), and continues
// in a strand of its own.
package sqlite
