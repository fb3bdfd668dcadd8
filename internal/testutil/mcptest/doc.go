// Package mcptest is an MCP server for tests, of the official SDK. It asks for the roots of its client, as servers of
// both eras of the protocol do, and says what it was told:
//
//	// In a process that the test binary plays, see package proctest:
//	return mcptest.New(mcptest.Options{}).Play()
//
// Its tool "roots" answers with the roots, which are to be the [URIs] of the session's, and its tool "heard" with the methods of all
// messages that it was sent. A test adds tools of its own with [Server.Add], and puts a server behind HTTP with
// [Guard]. Only tests import it.
package mcptest
