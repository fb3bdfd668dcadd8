// Package acp is the adapter between ACP clients and a runtime: ACP methods on one side,
// sessions on the other.
//
// [Serve] answers one client over a pair of streams. What answers the prompts is a
// runtime (package acp/runtime); where sessions are kept is a store (package sessionstore).
// Everything between is here: validation before any effect (clause A5), root sets
// (A2-A9), the order of a session's requests (A32), the record of what was said (S8), listing (A16-A18), and
// the checks on what goes to the client (A26).
//
//	err := acp.Serve(ctx, os.Stdin, os.Stdout, acp.Options{
//		Backend: func() backend.Backend { return explore.New() },
//		Store:   sqlite.New(sqlite.Options{Dir: dir}),
//	})
//
// # A session's states
//
// A session exists once session/new or session/fork was answered. It is stored, and it may be
// active in this process:
//
//	          new, fork                       load, resume
//	(none) ─────────────▶ active ◀──────────────────────────── stored
//	                       │  ▲ │                                 ▲
//	                prompt │  │ │ close, end of input,            │
//	                       ▼  │ │ fenced by another process       │
//	                     in a turn ─────────────────────────────▶─┘
//	                          answered
//
// In a turn: a second prompt is refused, until a session/cancel was read; then it waits for the
// cancelled turn's answer. A load or resume first does everything that can fail, then ends the turn as
// cancelled, then takes the session over. Close and delete end the turn first. Fork copies the
// turns that have ended and touches nothing. Delete leads to (none) from everywhere. A session that the runtime
// knows by itself is stored once a list has imported it.
//
// # Where to look
//
// options.go says what can be set; agent.go takes what arrives and sends it on; lane.go keeps the order;
// activation.go, create.go and reopen.go open sessions, end.go closes and deletes them; prompt.go and turn.go run
// turns; session.go and host.go are what runs, record.go stores what is said, and held.go has what is said too early;
// bridge.go has a session's MCP servers, and found.go starts those that its roots name; list.go lists, imports.go has
// what the runtime knows in the list; replay.go shows a loaded history, replaying.go takes one from the runtime, and
// pace.go holds both back; params.go, mcpservers.go and shapes.go read requests; gate.go guards what goes to the client;
// panics.go keeps a runtime's panics, and disk.go disks that do not answer, from holding up the rest.
package acp
