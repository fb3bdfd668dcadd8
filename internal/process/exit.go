package process

import "fmt"

// ExitError: a child that ended other than with status 0.
type ExitError struct {
	// Name is the child's name, as in the log.
	Name string
	// Code is its exit status, -1 if a signal ended it.
	Code int
	// State is how it ended, as the operating system says it: "exit status 1", "signal: killed".
	State string
	// LastLine is the last line of its stderr, "" if there was none. It is the child's own text.
	LastLine string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended: %s", e.Name, e.State)
	if e.LastLine != "" {
		text += fmt.Sprintf("; its last line on stderr: %q", e.LastLine)
	}
	if e.Code == shellNotFound {
		text += "; status 127 usually means that a program it needs is not in PATH," +
			" which is short in editors started from a desktop"
	}
	return text
}

// shellNotFound is the status with which shells and env(1) report a program that is not there.
const shellNotFound = 127
