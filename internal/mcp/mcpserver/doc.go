// Package mcpserver serves the file tools to MCP clients. It works inside the roots that a client
// declares, and follows them when they change.
//
//	server, err := mcpserver.Open(ctx, mcpserver.Options{})
//	defer server.Close()
//	err = server.Serve(ctx, os.Stdin, os.Stdout)
//
// The scope of a call is the first of these:
//
//   - the configured roots ([Options.Roots]); the client is not asked for its own
//   - the roots that a session of acp-agent has at the time of the call ([Options.Session])
//   - the client's roots, if it has the roots capability
//   - nothing: no file is accessible, and the tools say why
//
// All valid roots are in scope, and relative paths start in the first, which models know as
// the working directory. Invalid entries are left out, and the tool list_roots says why. If a
// client's list has no valid entry, or the client does not answer, no file is accessible until a
// valid list arrives.
//
// Both eras of the protocol are served. A legacy client, which sends initialize, is asked with a
// roots/list request: over stdio when it is ready and when its list has changed, over HTTP during a
// call. A modern client (revision 2026-07-28) is asked in the result of each call that needs roots,
// and receives no requests. Each list is opened completely before it replaces the previous one, and
// running calls finish with the roots with which they started.
//
// The modern revision deprecates roots (SEP-2577). They are supported for the clients that declare
// them.
package mcpserver
