// Package mcpservers starts a session's MCP servers, shows them the session's roots, and offers their tools.
//
// A [Set] is the servers of one session, and the session's [backend.Tools]. Each server has a client of its own, so that no
// session's roots reach another's and no slow server delays the rest (A22). Servers are started when something of
// theirs is first asked for: several at once, within a bound that all sessions of a process share by one [Starter].
//
//	starter := mcpservers.NewStarter(mcpservers.StarterOptions{})       // one for the process
//	set := mcpservers.NewSet(starter, mcpservers.Options{Logger: log})  // one for the session
//	change, err := set.Prepare(workspace, configs)                      // may fail, changes nothing
//	change.Commit(host)                                                 // cannot fail
//	tools, err := set.List(ctx)                                         // starts them
//	err = set.Close(ctx)                                                // ends them, with their process groups
//
// # How the adapter drives it
//
//   - session/new and fork: NewSet and Prepare among what can fail; Commit once the session is stored; Close if that
//     fails.
//   - session/load and resume of a live session: Prepare on the live session's set, with the new workspace and the complete
//     list of servers; Commit after the running turn has ended and the store has the new roots, before the replay. If
//     anything fails before, drop the change: Prepare had no effect (A12, M15).
//   - session/load and resume of another session: as session/new.
//   - session/close, delete, and a session that was fenced: Close.
//   - The end of the process: Close of every session, at once.
//
// Commit never waits for servers. Those whose configuration is unchanged go on and are told of new roots; those that are
// gone are stopped; new ones are started when needed (M3, M15). What the user should see, such as a server that is
// restarted because the roots shrank, goes through the host as a message.
//
// # A server's life
//
//	idle ─need─▶ starting ─▶ ready ──ends──▶ waiting ─▶ starting …
//	                │                           │
//	                └─ cannot be started ──▶ failed ◀── ended too often
//
// Between its connection and its first call a legacy server has time to fetch the roots (M5). Its working directory is
// the session's cwd (M4). What it writes to stderr, and its log messages, go to our log under its name, without the
// values of its environment and headers.
//
// Modern servers ask for roots inside the results of calls (M7); package mcproots answers.
//
// # Bounds
//
// Every bound is a field of [Options] or [Policy] with a default. A server that floods is slowed down or cut off, never
// buffered: see [Options.MaxMessage] and [Options.MaxNotices].
package mcpclient
