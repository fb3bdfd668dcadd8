// Package mcpclient starts MCP servers, gives them roots, and calls their tools.
//
// A [Set] holds the servers of one session. Each connection has its own MCP client, so that
// sessions do not see each other's roots and a slow server does not delay the others. Servers are
// started when something they offer is first needed, several at once, within a bound that all
// sessions of a process share.
//
//	starting := make(chan struct{}, 8)                     // one per process
//	set := mcpclient.NewSet(starting, mcpclient.Options{}) // one per session
//	change, err := set.Prepare(workspace, configs)         // may fail, has no effect
//	change.Commit(host)                                    // cannot fail
//	tool, err := set.Tool(ctx, "files.read")               // starts the server
//	result, err := set.Call(ctx, tool, arguments, report)  // if the user allows it
//	err = set.Close(ctx)                                   // stops the process groups
//
// The package knows nothing about ACP, and never asks anybody for permission. It passes a server's
// questions, and its requests to the session's model, to a [Host]. Package acp/internal/servers
// implements it. What it tells of servers has the types of package acp/mcp.
//
// Commit keeps the servers whose configuration is unchanged and tells them of new roots, stops
// those that were removed, and never waits.
//
// # States of a server
//
//	idle ── needed ──▶ starting ──▶ ready ── ends ──▶ waiting ──▶ starting …
//	                      │                              │
//	                      └─ cannot be started ▶ failed ◀┘ ended too often
//
// # Ends
//
// server.run alone begins these states and closes connections. Others end a context, whose cause
// says why:
//
//	context of a      ends when                           then
//	Set               the session ends (Close)            all processes end
//	server            it is removed (Commit)              its process ends
//	connection        the process or the stream has       the calls fail, and it is connected again
//	                  ended, as the SDK or a call sees    after a pause
//	connection        it cannot be kept with the new      the calls fail, and it is connected again
//	                  folders of the session              at once
//	connection        an HTTP server cannot be reached,   the calls go on, and it is connected again
//	                  or does not know its session        meanwhile
//
// A connection that is being made ends with its time, or if the user must sign in. It is made again
// when they have.
//
// # A call
//
// [Set.Call] (call.go) finds the tool, and with it a connection from server.ready, which starts the
// server if necessary (server.go). The connection repeats the call with what the server asks for
// (middleware.go), through the transport to a process or URL.
//
// Before its first call a legacy server has time to fetch and process the roots. A modern server
// (2026-07-28) asks for roots in the results of calls. A server's stderr and log messages go to our
// log under its name, without the values of its environment and headers.
package mcpclient
