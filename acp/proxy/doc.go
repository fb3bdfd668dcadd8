// Package proxy is a backend that answers prompts with another ACP agent, which it runs as a child
// process.
//
// It is the child's client, and the agent of our client. Messages pass through byte for byte,
// whether this program knows their method or not; only session ids are translated, because the
// child has its own.
//
//	from the client                   to the child
//	  initialize                        initialize, with protocol version 1
//	  session/new, load, resume, fork   see "Opening sessions"
//	  session/prompt                    the same, also during a turn, perhaps with context
//	  other requests, notifications     the same
//	  session/cancel                    session/cancel; also when a turn ends early
//	  session/close, session/delete     the same, if the child advertises them
//	  session/list                      nothing: the store answers, and imports what the child
//	                                      lists ([backend.Foreign])
//
//	from the child                    to the client
//	  session/update                    the same; announced commands include those of the roots
//	  fs/* for a file in its own dirs   nothing: answered from the disk; see profiles.State
//	  other requests, notifications     the same, if package acp allows their method and paths
//
// Order is kept in both directions: a message that the child sends after a response reaches the
// client after that response. If the client does not read, the child is not read either. Updates
// for a session that the child has not announced yet are held.
//
// # Opening sessions
//
// Every session can be opened in every way, whatever the child supports. The first of these
// requests that the child advertises and does not reject is used:
//
//	from the client   the child has   to the child     the client is shown and the store keeps
//	  session/new       -               session/new      -
//	  session/load      load            session/load     the stored history, and then what the child
//	                                                     replays after its end
//	                    resume          session/resume   the stored history
//	                    neither         session/new      the stored history; the child is told it
//	  session/resume    resume          session/resume   nothing
//	                    load            session/load     nothing: the replay is dropped, except
//	                                                     that of a session that only the child
//	                                                     knows, which is stored
//	                    neither         session/new      nothing; the child is told the history
//	  session/fork      fork            session/fork     nothing, even if the child replays the copy
//	                    no fork         session/new      nothing; the child is told the history
//
// If the child has rejected its own session but does not say that it does not know it, the next
// opening tries that one first, and the child is told in it what was said meanwhile.
// The child is told the history in its next prompt: the end of the conversation, as text of limited
// size. A child session is closed when no bridge uses it. If changing it fails halfway, it is
// opened again as it was before.
//
// The profile may say that a session keeps additional directories which a load or resume no longer
// names. Then the child is sent session/fork instead, or without that session/new, and later
// session/delete for the session that the copy replaces.
//
// # Roots
//
// A child that advertises additionalDirectories is sent the list. An agent whose profile has a flag
// for directories is started with it, in one process for all sessions with the same directories in
// the same order. For any other agent the prompt describes the roots, and the agent gets an MCP
// server with tools for them ([Options].RootsTools), which asks for the session's roots in each
// tool call. The mode in use is saved with the session; see [Describe].
//
// A child is also told the instructions and skills of all roots that it does not find itself (see
// [profiles.Finds]), and again when they change; instructions of directories below the roots are
// listed. If it advertises systemPrompt, this context is in that member of session/new. Otherwise,
// and for later changes, it is a marked block after the content of the next prompt. Marked blocks
// never become part of the history.
//
// # Failures
//
// Children are started by initialize or when they are needed, and ended with their process groups:
// one for certain directories with its last session, the others by Close. If one ends unexpectedly,
// running turns fail with an error that says how it ended. The next prompt restarts it, with
// increasing delays if it keeps failing, opens the session as for session/resume, and restores
// modes and options. The next request continues a session in the same way if its process was
// stopped as idle. That happens to a process that was started for certain directories, after ten to
// twenty minutes, if the agent can load or resume sessions.
//
// # Types, and the way of a message
//
//	client -> bridge -> childSession -> child       requests and notifications
//	client <- bridge <- childSession <- router      what the child sends
//
//	proxy             the backend: the program, and the uses of its children
//	child.Program     the agent's program; its children are processes, each for a child.Place
//	bridge            an open session of the client, from Open to Close; its parts:
//	  setup             what the client asked for and its MCP servers, which do not change
//	    relays.Session  tells these servers the roots, by relays that sessions may share
//	  current           the childUse of its session, and what that must be told and sent next
//	  commands          the slash commands that the client is offered
//	  hints             what the user is told of the sandbox
//	childUse          a bridge's use of a child and of a session there; its close releases both
//	childSession      a session in a child until its last user leaves, with its unanswered prompts
//	  subagent          the session itself, or one below it: what the router knows by an id
//	opener            opens a session in the child that was chosen, with the trials of its plan
//
// Packages below know no bridge: child has the processes and the way of their messages, briefing
// the texts about the roots and what is in them, and relays and commands the parts named above.
//
// A session is opened by bridge.open: a use of a child begins, and an opener makes the planned
// trials until one succeeds. The use is closed if that fails, and otherwise when the session is
// closed or opened again. It holds all but the relays, which the bridge has until it is closed.
//
// A prompt waits until all earlier ones were sent. If the current child does not run, the session
// is opened again first. The prompt is sent with the text of the command that it calls and with the
// parts of the context that have changed since the child was told. Once the child has answered, it
// counts as told.
//
// A message of the child goes from its child.Router to the childSession, and from there to the
// latest user. An update belongs to the oldest prompt that the child has not answered; while a
// session is opened, an updateFilter may keep or drop it. A request, such as one for a permission,
// goes to the client's host, which checks it; but some files are served here. Package profiles has
// what is known about each agent.
//
// # Locks
//
// A goroutine that holds a lock takes only locks further down:
//
//  1. Commands.mu or hints.mu, while the client is shown an announcement or an explanation
//  2. childSession.mu, while a prompt or session/cancel is sent
//  3. proxy.mu, while a use of a child begins
//  4. all others, for a few statements
package proxy
