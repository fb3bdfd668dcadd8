package mcpclient

import (
	"errors"
	"fmt"
	"os/exec"
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/process"
)

// phase says what a server is doing, with the facts that hold only meanwhile. It does not change: the
// server enters a new one.
type phase struct {
	state      acpmcp.State   // Ready while there is a connection, see describe
	waiting    string         // what a starting server waits for, unless it is signIn
	signIn     *authorization // that a starting server waits for, or nil
	connection *connection    // that takes new calls, nil unless the state is Ready
	failure    error          // why the last attempt failed, nil once the server was connected
	refuses    bool           // calls fail with failure, because waiting is not worthwhile
	retryAt    time.Time      // when a failed server may be tried again
}

// starting returns the phase of a server that is not connected yet.
func starting(waiting string) phase { return phase{state: acpmcp.Starting, waiting: waiting} }

// restarting returns the phase of a server whose connection was withdrawn: new calls wait for the
// next one.
func restarting() phase { return starting("it is being restarted") }

// isRunning reports whether run connects the server, serves it, or waits to try again.
func (p phase) isRunning() bool {
	return p.state == acpmcp.Starting || p.state == acpmcp.Ready || p.state == acpmcp.Waiting
}

// describe returns the state as others see it, and what the server waits for if that is Starting: a
// connected server is not ready before it has had time to read the roots.
func (p phase) describe() (state acpmcp.State, waiting string) {
	switch {
	case p.signIn != nil:
		return p.state, p.signIn.describe()
	case p.connection != nil && p.connection.readiness.left() > 0:
		return acpmcp.Starting, "it is given time to read the roots"
	}
	return p.state, p.waiting
}

// explain adds to err what was waited for.
func (p phase) explain(err error) error {
	if _, waiting := p.describe(); waiting != "" {
		err = fmt.Errorf("%w: %s", err, waiting)
	}
	if p.failure != nil {
		err = fmt.Errorf("%w; the last attempt failed: %w", err, p.failure)
	}
	return err
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
	if errors.As(err, new(*authorizationError)) {
		return true
	}
	if e, ok := errors.AsType[*transportError](err); ok {
		return e.fault == refused && isFinalStatus(e.code)
	}
	return errors.As(err, new(*process.StartError)) || errors.As(err, new(*exec.Error)) ||
		errors.Is(err, errNoSuchRoot) || errors.Is(err, errDirectory) ||
		errors.Is(err, errNotAllowed)
}
