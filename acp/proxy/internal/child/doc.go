// Package child runs the processes of an agent's program: it starts and initializes them, passes
// messages, and ends them when nobody uses them. It knows no sessions but by their ids.
//
//	Program     the program; it starts a child for each Place
//	  Config      how, and with what limits
//	Process     a child: a process, with the connection to it
//	  uses        what it is needed for
//	  ownDir      a directory in which it has files that are served here
//	Router      gives a child's messages to the recipients that they name
//	  Recipient   a session, or a subagent of one
//	  Barrier     keeps the order of responses and later messages
//
// A child is started when it is needed, after a delay if the last ones have failed. The main child
// lasts until Close. Another one ends with its last user; it is stopped earlier if it has no pins
// for a while, and the agent can load or resume sessions.
//
// The read loop of a child calls the recipients and the client. No lock is held meanwhile.
package child
