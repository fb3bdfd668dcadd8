// Package client starts a session's MCP servers, gives them the session's roots, and offers their
// tools and resources.
//
// A [Set] holds the servers of one session and implements [backend.Tools]. Each connection has its
// own MCP client, so that sessions do not see each other's roots and a slow server does not delay
// the others. Servers are started when something they offer is first needed, several at once,
// within a bound that all sessions of a process share through one [Starter].
//
//	starter := mcpclient.NewStarter()                                  // one per process
//	set := mcpclient.NewSet(starter, mcpclient.Options{Logger: log})   // one per session
//	change, err := set.Prepare(workspace, configs)                     // may fail, has no effect
//	change.Commit(host, nil)                                           // cannot fail
//	listings, err := set.List(ctx)                                     // starts the servers
//	err = set.Close(ctx)                                               // stops them and their process groups
//
// # Lifecycle requests
//
//   - session/new and fork: NewSet and Prepare before anything takes effect; Commit once the session is stored.
//   - session/load and resume of an active session: Prepare on its set, with the new workspace and the complete list of
//     servers; Commit after the running turn has ended and the store has the new roots, before the replay. On failure, drop
//     the change.
//   - session/load and resume of another session: as session/new.
//   - session/close and delete, and the end of the process: Close.
//
// Commit keeps the servers whose configuration is unchanged and tells them of new roots, stops
// those that were removed, and never waits. Messages for the user, such as that a server restarts
// because the session has lost a root, go through the host.
//
// # States of a server
//
//	idle ── needed ──▶ starting ──▶ ready ── ends ──▶ waiting ──▶ starting …
//	                      │                              │
//	                      └─ cannot be started ▶ failed ◀┘ ended too often
//
// Before its first call a legacy server has time to fetch and process the roots. A modern server
// (2026-07-28) asks for roots in the results of calls, which package mcproots answers. A server's
// stderr and log messages go to our log under its name, without the values of its environment and
// headers.
//
// # Servers found in roots
//
// A server that a file in a root configures is a [FoundServer]. It must not be started without the
// user's permission, which [Consents] asks for and remembers.
package client
