package mcpclient

import (
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// FailedError: a server that could not be started, or ended.
type FailedError struct {
	// Server is the client's name for it.
	Server string
	// Err is what happened: a *child.StartError, a *child.ExitError, or what the connection said, without secrets.
	Err error
}

func (e *FailedError) Error() string { return fmt.Sprintf("MCP server %s: %v", named(e.Server), e.Err) }

// Unwrap returns what happened.
func (e *FailedError) Unwrap() error { return e.Err }

// LateError: a server that was waited for as long as the bound allows.
type LateError struct {
	Server string
	// What is what it was to do.
	What  string
	Bound time.Duration
}

func (e *LateError) Error() string {
	return fmt.Sprintf("MCP server %s has not %s within %v; it is not waited for longer", named(e.Server), e.What, e.Bound)
}

// TooManyError: more servers than a session may have.
type TooManyError struct{ Count, Limit int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d MCP servers are more than the %d that a session may have", e.Count, e.Limit)
}

// MessageError: a message from a server that ended its connection.
type MessageError struct{ Limit int }

func (e *MessageError) Error() string {
	return fmt.Sprintf("it sent a message of more than %d bytes", e.Limit)
}

// UnreadError: a server that asks, and does not take the answers.
type UnreadError struct {
	// Questions is how many it has asked, Bound how long it has taken no answer.
	Questions int
	Bound     time.Duration
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("it asked %d questions and took none of the answers within %v", e.Questions, e.Bound)
}

// DeniedError: a call, or a start, that the user did not allow.
type DeniedError struct {
	// What is the name of the tool in the catalogue, or says which server.
	What string
	// Cancelled says that the question was cancelled, with the turn. The error then is [backend.ErrCancelled], too.
	Cancelled bool
}

func (e *DeniedError) Error() string {
	if e.Cancelled {
		return fmt.Sprintf("%s was not used: the question for permission was cancelled", e.What)
	}
	return fmt.Sprintf("%s was not used: the user did not allow it", e.What)
}

// Unwrap tells a question that was cancelled from a no.
func (e *DeniedError) Unwrap() error {
	if e.Cancelled {
		return backend.ErrCancelled
	}
	return nil
}

// TemplateError: a template in a server's arguments or environment that names a root which there is not (M14).
type TemplateError struct {
	Template string
	// Roots is how many there are.
	Roots int
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s names a root that there is not: the session has %d, counted from 0, which is cwd", e.Template, e.Roots)
}
