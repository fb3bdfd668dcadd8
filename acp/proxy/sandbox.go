package proxy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// sandboxRoots returns the roots of s that its child is restricted to, each as its path, its real
// path and its grant, joined by NUL, or "" if the child is not restricted.
func (p *proxy) sandboxRoots(s *session) string {
	if !p.isRestricted() {
		return ""
	}
	var roots []string
	for _, root := range s.host.Workspace().Opened() {
		roots = append(roots, root.Dir.String(), root.Real.String(),
			strconv.Itoa(int(root.Grant)))
	}
	return strings.Join(roots, "\x00")
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
	case err == nil && (profile.Sandbox.Mode == backend.SandboxOff || profile.State.SandboxHint == ""):
		return ""
	case err == nil:
		return profile.State.SandboxHint + "\n\n"
	}
	return fmt.Sprintf("The agent runs without a sandbox and can write wherever you can: %v.\n\n", err)
}
