package proxy

import (
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/workspace"
)

// sandboxRoots returns the roots of s that its child is restricted to, or nil if the child is not
// restricted.
func (p *proxy) sandboxRoots(s *session) (roots []profiles.Root) {
	if !p.isRestricted() {
		return nil
	}
	for _, root := range s.host.Workspace().Opened() {
		roots = append(roots, profiles.Root{Path: root.Dir.String(), Real: root.Real.String(),
			ReadOnly: root.Grant == workspace.ReadOnly})
	}
	return roots
}

// Grants implements [backend.Confined].
func (s *session) Grants() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return ""
	}
	return s.current.child.sandbox.Describe()
}

// sandboxNotice tells the user that the agent runs without the sandbox, or what to know about it.
func (p *proxy) sandboxNotice() string {
	profile := p.options.Profile
	err := profile.Sandbox.Unprotected()
	switch {
	case err == nil && (profile.Sandbox.Mode == backend.SandboxOff ||
		profile.State.SandboxHint == ""):
		return ""
	case err == nil:
		return profile.State.SandboxHint + "\n\n"
	}
	return fmt.Sprintf("The agent runs without a sandbox and can write wherever you can: %v.\n\n",
		err)
}
