package client

import (
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
)

// status returns the server's status.
func (s *server) status() acpmcp.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := acpmcp.Status{
		Name: s.config.Name, Prefix: s.prefix, Transport: s.config.Transport, File: s.config.File,
		State: s.state, Err: s.err, Restarts: s.restarted,
		RootsDeclared: s.config.declaresRoots(),
	}
	if s.state == acpmcp.Starting {
		status.Waiting = s.waiting
		if s.signingIn != nil {
			status.Waiting += ": " + OpenPage(s.signingIn.page)
		}
	}
	if (s.state == acpmcp.Waiting || s.state == acpmcp.Failed) && time.Now().Before(s.retryAt) {
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
	status.Instructions = r.Instructions
	for _, p := range c.prompts.latest() {
		status.Prompts = append(status.Prompts, p.Prompt)
	}
	if i := r.ServerInfo; i != nil {
		status.Product = text.Name(i.Name) + " " + text.Name(i.Version)
	}
	status.SentRoots, status.SentAt = c.sentRoots()
	return status
}
