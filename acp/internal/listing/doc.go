// Package listing finds the sessions of an agent: those in the store, and those that only the
// backend knows (see [backend.Foreign]). Another agent's sessions are refused.
//
// It opens no session, and knows neither active sessions nor their turns.
//
// # Locks
//
// importRun.mu is held while sessions are stored. imports.mu is held for a few statements, and
// before that of the group of tasks.
package listing
