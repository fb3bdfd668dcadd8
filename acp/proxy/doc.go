// Package proxy is a runtime whose answers come from another ACP agent, a child process.
//
// To the agent we are its client; to our client we are the agent. What one says to the other
// passes through as the bytes that were sent, whether anybody here knows it or not (clause
// P6). Session ids alone are exchanged: the child has its own.
//
//	the client sends                     the child is sent
//	  initialize                           initialize, with our protocol version
//	  session/new, load, resume, fork      what it can of these: see below
//	  session/prompt, and any other        the same; see "What the roots hold"
//	    request of a session
//	  session/cancel, and whatever         session/cancel, once
//	    else ends a turn early
//	  session/close, session/delete        the same, if it advertises that
//	  any other notification               the same
//	  requests that name no session        the same
//	  session/list                         nothing: it is answered from the store, which imports
//	                                         what the child lists (runtime.Foreign)
//
//	the child sends                      the client is sent
//	  session/update                       the same, in the turn or outside of it; commands together
//	                                         with those of the roots
//	  any other request or notification    the same, through the adapter's checks
//
// Order is kept in both directions: what the child sends behind an answer reaches the client behind that
// answer. A client that does not read makes the child wait (W11). Updates for a session that the child has not
// yet announced are held until it is.
//
// # Lifecycle
//
// Every session can be opened in every way, whatever the child can do. The first of these that the child
// advertises, and does not refuse, is taken:
//
//	the client sends   the child has   the child is sent   the client is shown, and the record has
//	  session/new        -               session/new         -
//	  session/load       load            session/load        the child's replay as it comes, in the place of ours
//	                     resume          session/resume      our record
//	                     neither         session/new         our record; the child is told of it
//	  session/resume     resume          session/resume      nothing
//	                     load            session/load        nothing: the replay is dropped
//	                     neither         session/new         nothing; the child is told of the record
//	  session/fork       fork            session/fork        nothing, though the child replay the copy
//	                     no fork         session/new         nothing; the child is told of the record
//
// A session that runs in the child already goes on there where it would otherwise be made anew, if nothing has
// changed that only a lifecycle request could say. A child that replays nothing is taken for one that only
// resumes. To be told of the record is to be given, before the next prompt, the end of the conversation in
// a marked block, which is bounded and never becomes history (P7). Such a session of the child's lacks the
// beginning: its replay never takes the place of our record. Nor does that of a child whose profile says that
// it answers before it has replayed all. The child's session is closed when no activation uses it any more: one
// that replaces another goes on with it. Where that comes to nothing after all, the child is asked for the session
// once more as it was before.
//
//	the child has              the client's        the child is sent
//	  close                      session/close       session/close
//	  delete                     session/delete      session/delete
//	  list, and load or resume   session/list        session/list, by what imports
//	  none of them               any                 nothing
//	  additionalDirectories      new, load, resume,  the list (P3)
//	  no additionalDirectories     fork              no list: see below
//
// A child that does not answer to a close or delete is not waited for.
//
// # Roots
//
// A child that advertises additionalDirectories is sent the session's list. One whose profile knows a flag for
// them is started with it, a process for each session that has more than one root. Another is told in words:
// its next prompt begins with a marked block that names the roots, in order, and what is in them; the log says
// so (P1, P7). It is also given an MCP server with tools for all of them ([Options].RootsTools), which a change of
// the roots replaces by another lifecycle request. The way in use is saved with the session: see [Describe].
//
// # What the roots hold
//
// A child finds what is under its working directory by itself. The instructions of the other roots it is told in
// such a block, whatever the way, and again when they have changed. Commands and skills of all roots are
// announced behind the child's own, which count first; where there are none, its announcements pass as they are. A
// prompt that calls one is sent with its text in such a block, before what was typed. One that calls a command of the
// child's own is sent as it was typed.
//
// # Faults
//
// Children are started by initialize or when they are first needed, and ended with their process groups by
// Close (W9). If one ends by itself, running turns fail with an [*EndedError] that says how it ended. The next
// prompt starts it anew, after a while if it keeps failing, and opens the session there as session/resume
// would; modes and options are set as they were. What a child knows is kept from run to run only where a child
// would otherwise be started for initialize alone.
package proxy
