package proxy

import (
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
)

// sandboxRoots returns the roots of s that its child is restricted to, each as its path and its real
// path, joined by NUL, or "" if the child is not restricted.
func (p *proxy) sandboxRoots(s *session) string {
	if !p.isRestricted() {
		return ""
	}
	var roots []string
	for _, root := range s.host.Workspace().Opened() {
		roots = append(roots, root.Dir.String(), root.Real.String())
	}
	return strings.Join(roots, "\x00")
}

// Root is a root of a session. Its fields:
//
//	Path string // as the client gave it
//	Real string // the same without links, when the session was opened
type Root = process.Root

// Restrict returns c with p's sandbox, for sessions with these roots.
func (p Profile) Restrict(c Command, roots []Root) (Command, error) {
	return c.Restrict(p.sandbox(), roots)
}

// sandbox returns p's sandbox with the agent's state.
func (p Profile) sandbox() backend.Sandbox {
	settings := p.Sandbox
	settings.State = p.State
	return settings
}

// sandboxNotice tells the user that the agent runs without the sandbox, or what to know about it.
func (p Profile) sandboxNotice() string {
	err := p.Sandbox.Unprotected()
	switch {
	case err == nil && (p.Sandbox.Mode == backend.SandboxOff || p.SandboxHint == ""):
		return ""
	case err == nil:
		return p.SandboxHint + "\n\n"
	}
	return fmt.Sprintf("The agent runs without a sandbox and can write wherever you can: %v.\n\n", err)
}
