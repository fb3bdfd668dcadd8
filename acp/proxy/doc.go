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
// size. A child session is closed when no activation uses it. If changing it fails halfway, it is
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
// tool call. Some agents share MCP servers between sessions with the same working directory. Such a
// session gets its own process if another session with other roots uses that directory; with the
// same roots, both have the same servers. The mode in use is saved with the session; see
// [Describe].
//
// A child is also told the instructions and skills of all roots that it does not find itself (see
// [profiles.Finds]), and again when they change; instructions of directories below the roots are
// listed. If it advertises systemPrompt, this context is in that member of session/new. Otherwise,
// and for later changes, it is a marked block after the content of the next prompt. Marked blocks
// never become part of the history. Commands and skills of all roots are announced after the
// child's own, unless the child uses their names. A prompt that calls one is sent with its text,
// and its answer names others of the same name.
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
// # Where to find things
//
// A session/load goes from session_open.go, which decides which ways are tried, to children.go,
// which finds the process, and session_request.go, which sends the request. A prompt goes from
// prompt.go to the process. What a process sends goes from router.go to childsession.go, which is a
// session in a process, and updates.go. Package profiles has what is known about each agent.
package proxy
