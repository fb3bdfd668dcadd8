package client

import (
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

// State is the state of a server.
type State string

// All states; see the package comment.
const (
	Idle     State = "idle"
	Starting State = "starting"
	Ready    State = "ready"
	Waiting  State = "waiting"
	Failed   State = "failed"
	Stopped  State = "stopped"
)

// Status describes a server, without its secrets.
type Status struct {
	ServerID
	Transport Transport
	// File is that of the server's Config.
	File  string
	State State
	// Waiting says what a starting server waits for. If it waits for the user to sign in, SignIn is
	// the page for that.
	Waiting, SignIn string
	// Err is the reason why the server failed or ended, nil otherwise.
	Err error
	// RetryAt is when it may be started again after that, zero if it may be at any time.
	RetryAt time.Time
	// Restarts counts how often it was started again.
	Restarts int
	// Product is the name and version that the server reports, Revision the revision of MCP that it
	// speaks, and Instructions its instructions for use. They are "" until it was connected.
	Product, Revision, Instructions string
	// Prompts are those that were listed last, nil if they were not.
	Prompts []Prompt
	// Modern says that Revision is 2026-07-28 or later.
	Modern bool
	// RootsDeclared says that the server may ask for the roots.
	RootsDeclared bool
	// SentRoots are the URIs of the roots last sent to it, and SentAt is the time.
	SentRoots []string
	SentAt    time.Time
	// Warnings has an entry for each deprecated feature in use.
	Warnings []string
}

// status returns the server's status.
func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{
		ServerID: s.id(), Transport: s.config.Transport, File: s.config.File, State: s.state, Err: s.err,
		Restarts: s.restarted, RootsDeclared: s.config.declaresRoots(),
	}
	if s.state == Starting {
		status.Waiting = s.waiting
		if s.signingIn != nil {
			status.SignIn = s.signingIn.page
		}
	}
	if (s.state == Waiting || s.state == Failed) && time.Now().Before(s.retryAt) {
		status.RetryAt = s.retryAt
	}
	for _, w := range s.warnings {
		status.Warnings = append(status.Warnings, string(w))
	}
	c := s.connection
	if c == nil {
		return status
	}
	r := c.peer.InitializeResult()
	status.Revision, status.Modern = r.ProtocolVersion, c.peer.Modern()
	status.Instructions, status.Prompts = r.Instructions, c.prompts.latest()
	if i := r.ServerInfo; i != nil {
		status.Product = text.Name(i.Name) + " " + text.Name(i.Version)
	}
	status.SentRoots, status.SentAt = c.sentRoots()
	return status
}
