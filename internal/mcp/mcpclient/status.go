package mcpclient

import (
	"slices"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
)

// maxFailure is the maximum length in bytes of a failure in the description of a server that is
// being started again.
const maxFailure = 1000

// status returns the server's status.
func (s *server) status() acpmcp.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := acpmcp.Status{
		Name: s.config.Name, Prefix: s.prefix, Transport: s.config.Transport, File: s.config.File,
		State: s.state, Err: s.err, Restarts: s.restarted,
		RootsDeclared: s.config.declaresRoots(), Warnings: slices.Clone(s.warnings),
	}
	c := s.connection
	if c != nil && c.isReady() {
		status.State = acpmcp.Ready
	}
	if status.State == acpmcp.Starting {
		status.Waiting = s.waiting
		if s.signingIn != nil {
			status.Waiting += ": " + OpenPage(s.signingIn.page)
		}
		if s.failure != nil {
			status.Waiting += "; the last attempt failed: " +
				text.Code(text.Truncate(s.failure.Error(), maxFailure))
		}
	}
	if c == nil {
		return status
	}
	r := c.session.Load().InitializeResult()
	status.Revision, status.Instructions = r.ProtocolVersion, r.Instructions
	for _, p := range c.prompts.latest() {
		status.Prompts = append(status.Prompts, p.Prompt)
	}
	if i := r.ServerInfo; i != nil {
		status.Product = text.Name(i.Name) + " " + text.Name(i.Version)
	}
	if sent := c.sent.Load(); sent != nil {
		status.SentRoots = sent.URIs()
	}
	return status
}
