package mcpclient

import (
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// phase is what a server is doing, with what is known of it only meanwhile.
type phase struct {
	state      acpmcp.State   // Ready while there is a connection, see describe
	waiting    string         // what a starting server waits for, unless it is signIn
	signIn     *authorization // that a starting server waits for, or nil
	connection *connection    // not nil if the state is Ready
	failures   int            // in a row, of a server that is waiting
	retryAt    time.Time      // when a failed server may be tried again
}

// starting returns the phase of a server that is not connected yet.
func starting(waiting string) phase { return phase{state: acpmcp.Starting, waiting: waiting} }

// restarting returns the phase of a server whose connection was withdrawn: new calls wait for the
// next one.
func restarting() phase { return starting("it is being restarted") }

// isRunning reports whether run is running in the phase.
func (p phase) isRunning() bool {
	return p.state == acpmcp.Starting || p.state == acpmcp.Ready || p.state == acpmcp.Waiting
}

// describe returns the state as others see it, and what the server waits for if that is Starting: a
// connected server is not ready before its connection takes calls.
func (p phase) describe() (state acpmcp.State, waiting string) {
	switch {
	case p.signIn != nil:
		return p.state, p.signIn.describe()
	case p.connection != nil && !p.connection.isReady():
		return acpmcp.Starting, "it is given time to read the roots"
	}
	return p.state, p.waiting
}
