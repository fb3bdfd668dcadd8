// Package mcproots is what MCP calls roots: directories as file URIs, in order, from a client to its servers.
//
// A directory becomes a URI by [FromDir] and a URI a directory by [ParseURI], exactly and strictly (clause M11):
// what could be read in two ways is refused, with a [*URIError] that says why.
//
// A [Snapshot] is the roots of one session at one time: real paths, in the session's order, each directory once
// (M1). [Take] makes one of an opened workspace and leaves out what is no longer where it was granted (M6).
//
// A [Client] shows a snapshot to one server. It is the client of the official Go SDK, which by itself sorts
// roots by URI and checks none:
//
//	client := mcproots.NewClient(&mcp.Implementation{Name: "example"}, mcproots.Options{Roots: current})
//	session, err := client.Connect(ctx, transport, nil)
//	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list"})
//
// It serves both eras of the protocol (M7). Up to revision 2025-11-25 a server sends roots/list and is told of
// changes. From 2026-07-28 on it puts its question into the result of a call; the [Session] answers, and calls again.
package mcproots
