// Package proxy is a runtime whose answers come from another ACP agent, a child process.
//
// To the agent we are its client; to our client we are the agent. What one says to the other
// passes through as the bytes that were sent, whether anybody here knows it or not (clause
// P6). Session ids alone are exchanged: the child has its own.
//
//	the client sends                     the child is sent
//	  initialize                           initialize, with our protocol version
//	  session/new                          session/new
//	  session/prompt, and any other        the same
//	    request of a session
//	  session/cancel, and whatever         session/cancel, once
//	    else ends a turn early
//	  session/close                        session/close, if it advertises that
//	  any other notification               the same
//	  requests that name no session        the same
//	  session/list, session/delete         nothing: they are answered from the store
//
//	the child sends                      the client is sent
//	  session/update                       the same, in the turn or outside of it
//	  any other request or notification    the same, through the adapter's checks
//
// Order is kept in both directions. A client that does not read makes the child wait (W11).
// Updates for a session that the child has not yet announced are held until it is.
//
// # Roots
//
// A child that advertises additionalDirectories is sent the session's list. One that does not is sent
// cwd alone, the log says so, and the session's first prompt begins with a block of context that names
// the other roots; it is for the child only and never becomes history (P1, P7).
//
// # Faults
//
// One child serves all sessions of the connection. It is started by initialize and ended with its
// process group by Close (W9). If it ends by itself, running turns and all later requests fail with an
// [*EndedError] that says how it ended.
package proxy
