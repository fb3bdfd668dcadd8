package proxy

import (
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// EndedError: the child ended, or closed its output. Every request that it had fails with this; the next one
// starts it anew.
type EndedError struct {
	// Name is the child's name, as in the log.
	Name string
	// Exit is a *child.ExitError, nil if it ended with status 0.
	Exit error
	// Why is why we ended it, nil if it ended by itself.
	Why error
}

func (e *EndedError) Error() string {
	how := fmt.Sprintf("%s ended: exit status 0", e.Name)
	if e.Exit != nil {
		how = e.Exit.Error()
	}
	if e.Why != nil {
		how = fmt.Sprintf("%s was ended: %v", e.Name, e.Why)
	}
	return fmt.Sprintf("the agent %s; what it wrote to stderr is in acp-agent's log at level info, under child=%s; try again: it is started anew, and the session goes on", how, e.Name)
}

// Unwrap returns how it ended.
func (e *EndedError) Unwrap() error { return e.Exit }

// VersionError: the child speaks another version of the protocol.
type VersionError struct {
	// Name is what the child calls itself.
	Name string
	// Version is what it answered with.
	Version int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s speaks version %d of ACP, acp-agent speaks 1: install a version of it that does", e.Name, e.Version)
}

// errNotReading is why a child that takes no input is ended.
var errNotReading = errors.New("it does not read what it is sent")

// Error codes of ACP.
const (
	codeAuthRequired = -32000
	codeNotFound     = -32002
)

// refusal is the error that the child answered with, nil if err is something else.
func refusal(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	errors.As(err, &refused)
	return refused
}

// surmountable reports whether another way to a session is worth trying after the child refused one. Agents
// answer with many codes for a session that they do not know.
func surmountable(err error) bool {
	refused := refusal(err)
	return refused != nil && refused.Code != codeAuthRequired && refused.Code != jsonrpc.CodeCancelled
}

// explained adds to a child's refusal what a person can do about it.
func (p *proxy) explained(err error) error {
	refused := refusal(err)
	if refused == nil || refused.Code != codeAuthRequired || p.profile.Login == "" {
		return err
	}
	e := *refused
	e.Message += fmt.Sprintf(" (if your editor does not offer a way to log in, type in a terminal: %s)", p.profile.Login)
	return &e
}
