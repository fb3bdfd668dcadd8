// Package servers shows a session's MCP servers to ACP clients and backends.
//
// A [Set] implements [backend.Tools] with the servers of one session. It presents what they do as
// ACP: a call becomes a tool call, which the user allows or rejects; a question of a server becomes
// an elicitation, or a permission request if the server asks the session's model. Package
// internal/mcp/mcpclient, below it, starts the servers and speaks MCP with them, describes them
// with the types of package acp/mcp, and asks back through [mcpclient.Host].
//
//	starting := make(chan struct{}, 8)                       // one per process
//	set := servers.NewSet(starting, mcpclient.Options{})     // one per session
//	change, err := set.Prepare(workspace, configs)           // may fail, has no effect
//	set.Commit(change, host, sampler)                        // cannot fail
//	result, err := set.Call(ctx, updates, "files.read", raw) // starts the server, asks the user
//	err = set.Close(ctx)                                     // stops the servers
//
// # Lifecycle requests
//
//   - session/new and fork: NewSet and Prepare before anything takes effect; Commit once the
//     session is stored.
//   - session/load and resume of an active session: Prepare on its set, with the new workspace and
//     the complete list of servers; Commit after the running turn has ended and the store has the
//     new roots, before the replay. On failure, drop the change.
//   - session/load and resume of another session: as session/new.
//   - session/close and delete, and the end of the process: Close.
package servers
