package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/workspace"
)

// parseRoots returns the roots in the params of a lifecycle request.
func parseRoots(params backend.Raw) (workspace.Roots, error) {
	var p struct {
		Cwd        string   `json:"cwd"`
		Additional []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(p.Cwd, p.Additional)
}

// rootsMode returns how to give roots to an agent with these capabilities, and the flags for
// RootsByFlags.
func rootsMode(p Profile, a client.Agent, roots workspace.Roots) (mode RootsMode, flags []string) {
	flags, ok := p.flags(roots.Additional())
	switch {
	case a.AdditionalDirectories && (p.Roots == RootsAuto || p.Roots == RootsByProtocol):
		return RootsByProtocol, nil
	case ok && (p.Roots == RootsAuto || p.Roots == RootsByFlags):
		return RootsByFlags, flags
	}
	return RootsByContext, nil
}

// RootsMode is a way to give an agent the additional directories of a session.
type RootsMode string

// The ways to give an agent additional directories.
const (
	// RootsAuto uses the protocol if the agent advertises that, otherwise its flag if it has one,
	// otherwise the prompt.
	RootsAuto RootsMode = ""
	// RootsByProtocol uses additionalDirectories in lifecycle requests.
	RootsByProtocol RootsMode = "protocol"
	// RootsByFlags uses arguments of the agent's process. Sessions with the same arguments share a
	// process.
	RootsByFlags RootsMode = "flags"
	// RootsByContext describes the directories in the system prompt, or in a marked block after the
	// first prompt.
	RootsByContext RootsMode = "context"
)

// ParseRootsMode parses auto, protocol, flags or context.
func ParseRootsMode(s string) (RootsMode, error) {
	switch m := RootsMode(s); m {
	case "auto":
		return RootsAuto, nil
	case RootsByProtocol, RootsByFlags, RootsByContext:
		return m, nil
	}
	return RootsAuto, fmt.Errorf(
		"%q is not a way to give an agent folders: use auto, protocol, flags or context", s)
}

// String returns the mode as ParseRootsMode reads it.
func (m RootsMode) String() string { return cmp.Or(string(m), "auto") }

// given returns the additional directories in which the child may write because it is given them in
// this way.
func (s *session) given(mode RootsMode) workspace.Dirs {
	if mode == RootsByContext {
		return workspace.Dirs{}
	}
	return s.roots.Additional()
}

// Describe returns a sentence for a person on how the agent of a session learns of its directories.
// state is what the proxy saved with the session. Describe returns "" if state does not say.
func Describe(state []byte) string {
	switch decodeState(state).RootsMode {
	case RootsByProtocol:
		return "by the protocol: the agent takes additionalDirectories"
	case RootsByFlags:
		return "by flags: the agent has a process for these folders"
	case RootsByContext:
		return "by context: the prompt describes them"
	}
	return ""
}
