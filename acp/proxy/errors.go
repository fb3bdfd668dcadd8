package proxy

import "fmt"

// EndedError: the child ended, or closed its output. Every request that was or is meant for it fails with this.
type EndedError struct {
	// Name is the child's name, as in the log.
	Name string
	// Exit is a *child.ExitError, nil if it ended with status 0.
	Exit error
}

func (e *EndedError) Error() string {
	how := fmt.Sprintf("%s ended: exit status 0", e.Name)
	if e.Exit != nil {
		how = e.Exit.Error()
	}
	return fmt.Sprintf("the agent %s; what it wrote to stderr is in acp-agent's log, under child=%s; start acp-agent again to go on", how, e.Name)
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
