package client

import (
	"errors"
	"fmt"
)

// ErrNotInitialized: a method was called before Initialize had succeeded.
var ErrNotInitialized = errors.New("the agent was not initialized: call Initialize first")

// UnsupportedError: the agent did not advertise what was asked of it. Nothing was sent.
type UnsupportedError struct {
	// Agent is the agent's name.
	Agent string
	// Capability is what it lacks, as initialize spells it: "sessionCapabilities.fork".
	Capability string
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s does not support this: it does not advertise %s", e.Agent, e.Capability)
	if e.Capability == additionalDirectories {
		text += "; open the session on one directory, or put acp-agent in front of it"
	}
	return text
}

const additionalDirectories = "sessionCapabilities.additionalDirectories"
