package mcpclient

import (
	"errors"
	"os/exec"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
)

// ending says how an attempt to serve a server has ended.
type ending struct {
	err    error         // why
	served bool          // a server that is no process has answered a request
	age    time.Duration // of the connection, 0 if there was none
}

// step is what comes after an attempt: the next at once if there are no failures, and otherwise the
// next after a while or none.
type step struct {
	failures int           // in a row
	wait     time.Duration // before the next attempt
	giveUp   bool          // there is no next attempt until the server is needed again
}

// errReconnect is how an attempt ends that is followed by the next at once.
var errReconnect = errors.New("the server is being connected again")

// next returns what comes after an attempt that was made after failures in a row.
func (l limits) next(failures int, end ending) step {
	if errors.Is(end.err, errReconnect) || end.served && faultOf(end.err) == lostSession {
		return step{}
	}
	if end.served || end.age >= stableAfter {
		failures = 0
	}
	failures++
	wait := max(retryAfter(end.err), min(l.Backoff<<min(failures-1, 20), maxBackoff))
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
