// Package acp implements the agent side of the Agent Client Protocol (ACP) for sessions with
// several roots.
//
// [Serve] serves one client over a pair of streams. A backend (package acp/backend) answers the
// prompts, and a store (package sessionstore) keeps the sessions. This package does everything in
// between: it validates requests before they have any effect, opens the roots, keeps the requests
// of a session in order, records what was said, lists sessions, and checks what is sent to the
// client.
//
//	err := acp.Serve(ctx, os.Stdin, os.Stdout, acp.Options{
//		Backend: func() backend.Backend { return explore.New() },
//		Store:   sqlite.New(sqlite.Options{Dir: dir}),
//	})
//
// A [Server] serves many connections of several users. Each connection is a [Conn]; the program
// authenticates the user, and chooses the [Options] of each.
//
// # Words
//
//   - A connection is that of a client: a peer of JSON-RPC, and what its initialize declared.
//   - An agent is a backend and what initialize made of it. Each connection has one.
//   - A home has the sessions that a user has open, whichever connection opened them. An editor
//     over a pipe is a home with one connection.
//   - A session is a conversation about an ordered list of roots, the first of which is its working
//     directory. Users see roots as folders. It knows the agent that runs it.
//   - An activation is a session that is open in this process, with its roots, its MCP servers and
//     the backend's part of it: the type session. A lease of the store says which process has it.
//   - A turn is a prompt and everything until its response.
//   - A queue keeps the requests of one session in order; a ticket is a request's place in it.
//   - The host is what a backend sees of its session, which implements it (host.go).
//   - The viewers of a session are the connections that have it open.
//   - A notice is something that the user is told once, as a message in the conversation.
//
// # States of a session
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
// During a turn another prompt waits for its response and a third is rejected, unless the backend
// handles overlapping turns ([backend.Info].OverlappingTurns). A prompt that follows a
// session/cancel waits for the responses of the cancelled turns. Load and resume first do
// everything that can fail, except showing the history, then end the running turns as cancelled,
// then replace the activation. Close and delete first end the turns. When a connection ends, its
// turns end as cancelled; those of a remote [Peer] go on without a client for a while. A load or
// resume of a session that the same principal has open over another connection joins it: nothing is
// opened, and both clients are viewers. Fork copies the finished turns and changes nothing. Delete
// removes a session in any state. Sessions that only the backend knows are stored when a list
// imports them, or when a client opens one by the backend's own id.
//
// # Where to find things
//
// There is one file for each protocol method: session_new.go, session_fork.go, session_list.go;
// load and resume share session_load.go, close and delete share session_close.go. session_options.go
// has session/options.
//
//   - A connection: server.go has Serve and Server, with their limits, connection.go the
//     connection, agent.go its agent, with Options (options.go), home.go the home. conn.go makes
//     what internal/wire/jsonrpc reads and writes from a Conn. Options.Observe gets the events of
//     observe.go.
//   - What the client is told of the backend: initialize.go, with the table of capabilities in
//     agent_capabilities.go. authenticate.go offers ways to sign in for a backend that has none.
//   - A user on another machine: remote.go says which methods of the backend may be used,
//     methods.go what a role may do.
//   - A request: connection.Accept in connection.go is called on the read loop, in arrival order,
//     and calls the accept method of the request's file. That takes a ticket in the home's queue of
//     the session (package acp/internal/session/turns) where order matters, and returns the work,
//     which runs on another goroutine. When the ticket holds the queue, the active session says
//     which agent serves the request. A new method gets a file with an accept function, and a row
//     in the table of methods.go. Its name, and what advertises it, are in internal/wire/protocol.
//     stored in session_close.go accepts requests about a session that need not be open, such as
//     those of session_set_title.go, session_status.go, and session_archive.go, which has unarchive
//     too.
//   - The params: parseParams in params.go checks the names of members and parses them in one pass.
//     Each method's decode function then reads the fields and collects everything that is wrong.
//     setup_check.go checks the roots and servers in requests that only the backend knows.
//   - A session that several clients have open, which only remote peers do: join.go shows the
//     history to a client that joins, which holds back only the requests of that client. viewers.go
//     sends updates and questions to all of them (its rules are in package turns), settings.go
//     tells the others what one has set, lasting.go keeps turns that outlive their connections.
//   - What a session has used: spending.go reads what the agent reports, package
//     acp/internal/session/metering counts it, and the store keeps it. budget.go asks the user before it
//     exceeds a budget.
//   - Opening a session: agent.open in activation.go opens the roots, the MCP servers (mcp.go),
//     the catalog and the backend, for new, load, resume and fork alike. The session that it
//     returns is stored and then activated, or abandoned.
//   - A stored session: package acp/internal/listing checks that it belongs to the connection's
//     agent, stores the sessions that only the backend knows, and follows folders that were
//     renamed.
//   - A prompt: session_prompt.go takes a turn (package acp/internal/session/turns) through the queue, the
//     store and the backend.
//   - An update: the backend creates it with backend.ParseUpdate and passes it to
//     turnUpdates.Update (turn_updates.go) during a turn, or to session.Update (host.go), which
//     buffers it until the session's response was sent. Both call session.send (session.go),
//     which sends it to the client, if that takes its kind (updates.go), and hands it to the
//     sessionstore.Recorder that writes to the store. Their Commit methods wait for the store
//     before the update is sent.
//   - A replay: replay.go shows the stored history during a load. What the backend replays after
//     the end of it goes through session.Replay (replay_backend.go) into a draft, which is added to
//     the history. replay_rate.go limits how fast both are.
//   - A child session, such as that of a subagent: children.go. Its updates and requests are those
//     of the session, with a key in them.
//   - A message of the backend to the client: asker.check in client_calls.go compares its method with the
//     client's capabilities and its paths with the session's roots (capabilities.go). A permission
//     request that is the first to mention its tool call is also recorded (tool_calls.go). A
//     rule of the user may answer it (permission.go). Deny and ask rules also hold for files and
//     commands that nobody asks about (access.go). A file outside that the backend wants to read
//     is asked about and read here (outside_read.go), and so are all files of a restricted
//     backend (restricted_files.go).
//   - Roots: package workspace parses and opens them; decodeRoots in session_params.go turns its
//     errors into violations. folders.go adds the folders that the user declared to requests that
//     name none.
//   - A command that the adapter answers itself: own_turn.go finds it in a prompt, and opens the
//     session again if it changes the roots. roots_command.go answers /roots, roots_change.go adds
//     and removes folders, worktree_command.go answers /worktree, which copies the session, and
//     permissions_command.go /permissions. Package acp/internal/commands answers /mcp and adds all
//     of them to what the
//     backend announces; mcp_command.go gives it the session.
//   - MCP servers: mcp.go prepares them for a session. Package acp/internal/servers shows what they
//     do as ACP, package acp/internal/servers/found asks before one starts that a file in a root
//     configures.
//   - What must go on after its request has ended: contexts.go. What may hang or panic, and the
//     goroutines that the end of a connection waits for: package acp/internal/session/tasks.
//   - Titles: title.go. What the user is told once: notice.go.
//   - Errors: errors.go converts the errors of other packages to those of the protocol.
//
// # Locks
//
// A goroutine that holds a lock takes only locks further down. The first four are held while the
// backend, the client or the store is called:
//
//  1. a ticket that holds its queue (turns.Ticket)
//  2. session.inBackend: the methods of the backend's session must not overlap
//  3. session.beginUpdate: one update is going out
//  4. session.leasing: the recorder writes to the store while 3 is held
//  5. session.mu, its state, and locks of turns, listing, tasks and Server, for a few statements
//
// What ends a turn or a session because an update could not be sent or stored runs on another
// goroutine: it needs 2.
package acp
