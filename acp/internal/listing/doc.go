// Package listing finds the sessions of an agent: those in the store, and those that only the
// backend knows (see [backend.Foreign]). Another agent's sessions are refused.
//
// It opens no session, and knows neither active sessions nor their turns.
//
//   - sessions.go: [Sessions], the list, and requests that are passed on to the backend
//   - import.go, convert.go: copies of the backend's own sessions in the store
//   - owner.go: a stored session, which must be this agent's; open.go: one that is to be opened,
//     which only the backend may know
//   - moved.go: folders that were renamed or replaced since a session was last opened
//
// # Locks
//
// importRun.mu is held while sessions are stored. imports.mu is held for a few statements, and
// before that of the group of tasks.
package listing
