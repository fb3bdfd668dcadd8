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
//   - An adapter is a backend and what initialize made of it. Each connection has one, which runs
//     the sessions that the connection opens.
//   - The agent is the program behind the backend, which sends updates and asks.
//     sessionstore.Agent names it.
//   - A home has the sessions that a user has open, whichever connection opened them. An editor
//     over a pipe is a home with one connection.
//   - A session is a conversation about an ordered list of roots, the first of which is its working
//     directory. Users see roots as folders. It knows the adapter that runs it.
//   - An activation is a session that is open in this process, with its roots and the backend's part
//     of it: the type session. A lease of the store says which process has it.
//   - The conversation of an activation goes on when another one replaces it: the MCP servers, what
//     the user has allowed, and what they were told (conversation.go).
//   - A turn is a prompt and everything until its response.
//   - A queue keeps the requests of one session in order; a ticket is a request's place in it.
//   - The host is what a backend sees of its session. It comes before the session (host.go).
//   - The viewers of a session are the connections that have it open.
//   - The transcript of a session shows its viewers what is said in it, and records that.
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
// Each protocol method has a file: session_new.go, session_fork.go, session_list.go. Load and
// resume share session_load.go, close and delete share session_close.go. A new method gets a file
// with the shape of its params and an accept function, and a row in the table of methods.go; its
// name, and what advertises it, are in internal/wire/protocol.
//
// What a request says about a session to open is a sessionParams, what is to be opened is an
// opening, what its backend gets is a host, and what is active is a session; ending.go has all that
// ends one. A client asks for an open or stored session with a load, which opens or joins it. The
// request of a prompt is in session_prompt.go, its turn in turn.go and turn_end.go.
// docs/internals/architecture.md follows both through the files. internal/folders decides which
// folders a session gets. The parts of a session that need nothing of it are packages below
// internal/session.
//
// Messages of a backend, but for updates, pass through an asker of its session (asker.go), and all
// questions that rules may answer through asker.ask (ask.go). Both let internal/session/access
// decide: a message passes, is refused, or is asked about; a question is answered by a rule of the
// user, or put to all viewers. internal/session/question has what depends on a question alone.
//
// # What shows an update
//
// Transcript.Send shows the viewers what the backend says, and records it. Audience.Show shows them
// what is not recorded, or was recorded before; both are in internal/session/transcript. load.show
// shows the client that loads a session what was said so far. connection.deliver, to which all of
// them come, leaves out what the client does not take.
//
// # Contexts
//
// How long work goes on when a client cancels its request, or leaves, depends on the context:
//
//	context                 ends                                used for
//	of a jsonrpc.Request    when the client cancels the         waiting until the client has room
//	                        request or leaves
//	requestContext          when the client cancels the         the work of a request, which is
//	                        request, or with the adapter        answered although the input ended
//	closingContext          a while after the client has left   closing a session for a request
//	promptContext           as requestContext, and with         the request of a prompt, which may
//	                        Serve's                             outlive its connection
//	Turn.Context            when the turn ends early, or was    all that happens in a turn
//	                        answered
//	adapter.base            with the adapter, after requests    what belongs to a session and no
//	                        were answered                       request waits for
//	tasks.Commit            after 10 seconds                    storing and showing what has happened
//	context.WithoutCancel   never                               steps that it is too late to give up
//
// # Locks
//
// A goroutine that holds a lock takes only locks further down. The first four, and those of a
// session's gate and replay, are held while the backend, the client or the store is called:
//
//  1. a ticket that holds its queue (turns.Ticket)
//  2. session.inBackend: the methods of session.backend must not overlap
//  3. Audience.Shown: one update is going out and is recorded, so that all see and store the same
//     order. That of turnUpdates.sent comes before it.
//  4. that of a lease: the recorder writes to the store while 3 is held
//  5. locks of the packages below internal and of Server, for a few statements
//
// If an update cannot be sent or stored, the turn or session is ended on another goroutine, because
// that takes lock 2.
package acp
