// Package mcpserver offers the file tools to any MCP client, as a server that works inside its client's roots and
// follows them when they change.
//
//	server, err := mcpserver.Open(ctx, mcpserver.Options{})
//	defer server.Close()
//	err = server.Serve(ctx, os.Stdin, os.Stdout)
//
// The scope of a call is decided by the first of these that there is:
//
//   - the configured roots ([Options.Roots]): the client is not asked for its own;
//   - the client's roots, if it has the capability (clause M8);
//   - the fallback roots, for clients without it;
//   - nothing: no file is accessible, and the tools say why.
//
// The first valid root is where relative paths start, and all valid ones are in scope. What is not valid is left out,
// and the tool list_roots says why (M10). A client whose list has no valid entry, or that does not answer, has closed the
// scope until a valid list comes.
//
// Both eras of the protocol are served, also mixed on one connection. A client that sends initialize is
// asked by a roots/list request: over stdio when it is ready and when its list has changed, over HTTP within a call.
// One of revision 2026-07-28 is asked within the result of each call that needs roots, and is sent no requests.
// Every list is opened as a whole before it takes the place of the one before, and calls that run end with the roots they
// began with (M9).
//
// Roots and their changes are deprecated in that revision (SEP-2577); they are followed for the clients that have
// them.
package mcpserver
