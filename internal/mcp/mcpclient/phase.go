package mcpclient

import (
	"errors"
	"os/exec"
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/process"
)

// phase says what a server is doing, with the facts that hold only meanwhile. It does not change:
// the server enters a new one.
type phase interface {
	// describe returns the state as others see it, and what the server waits for if that is
	// Starting.
	describe() (state acpmcp.State, awaited string)
}

// The phases of a server.
type (
	idle      struct{}                    // it was not needed yet
	starting  string                      // it is not connected yet, because it waits for this
	signingIn struct{ *authorization }    // it is connected again after this
	serving   struct{ *connection }       // it takes calls once it has had time to read the roots
	waiting   struct{ refuses bool }      // it is tried again later; calls wait unless it refuses
	failed    struct{ retryAt time.Time } // it is tried again when it is needed, but not before
	stopped   struct{}                    // it was removed, or the session has ended
)

// restarting is the phase after a connection was withdrawn: new calls wait for the next one.
const restarting = starting("it is being restarted")

func (idle) describe() (acpmcp.State, string)       { return acpmcp.Idle, "" }
func (p starting) describe() (acpmcp.State, string) { return acpmcp.Starting, string(p) }
func (waiting) describe() (acpmcp.State, string)    { return acpmcp.Waiting, "" }
func (failed) describe() (acpmcp.State, string)     { return acpmcp.Failed, "" }
func (stopped) describe() (acpmcp.State, string)    { return acpmcp.Stopped, "" }

func (p signingIn) describe() (acpmcp.State, string) {
	if page := p.page.Load(); page != nil {
		return acpmcp.Starting, "it waits until you have signed in at " + page.Host
	}
	return acpmcp.Starting, "it has not said yet where to sign in"
}

func (p serving) describe() (acpmcp.State, string) {
	if p.readiness.left() > 0 {
		return acpmcp.Starting, "it is given time to read the roots"
	}
	return acpmcp.Ready, ""
}

// ending says how an attempt to serve a server has ended.
type ending struct {
	err    error         // why
	served bool          // a server over HTTP has answered a request
	age    time.Duration // of the connection, 0 if there was none
}

// step says what follows an attempt: the next at once if there are no failures, and otherwise the
// next after a while or none.
type step struct {
	failures int           // in a row
	wait     time.Duration // before the next attempt
	giveUp   bool          // no attempt follows until the server is needed again
}

// errReconnect is how an attempt ends that is followed by the next at once.
var errReconnect = errors.New("the server is being connected again")

// next returns what comes after an attempt that was made after failures in a row.
func (l limits) next(failures int, end ending) step {
	if errors.Is(end.err, errReconnect) || end.served && transportErrorOf(end.err).fault == lostSession {
		return step{}
	}
	if end.served || end.age >= stableAfter {
		failures = 0
	}
	failures++
	wait := max(transportErrorOf(end.err).later, min(l.Backoff<<min(failures-1, 20), maxBackoff))
	return step{failures, wait, isPermanent(end.err) || failures > l.MaxRestarts}
}

// isPermanent reports whether trying again would only result in the same error.
func isPermanent(err error) bool {
	e := transportErrorOf(err)
	return e.fault == refused && isFinalStatus(e.code) ||
		errors.As(err, new(*authorizationError)) || errors.As(err, new(*process.StartError)) ||
		errors.As(err, new(*exec.Error)) || errors.Is(err, errNoSuchRoot) ||
		errors.Is(err, errDirectory) || errors.Is(err, errNotAllowed)
}
