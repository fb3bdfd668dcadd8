package proxy

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
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

// likelyMode returns how a child is given the roots if it can do what the last one could.
func (s *session) likelyMode() profiles.RootsMode {
	mode, _ := s.proxy.options.Profile.Roots.Choose(s.proxy.agentInfo().AdditionalDirectories,
		s.roots.Additional())
	return mode
}

// given returns the additional directories in which the child may write because it is given them in
// this way.
func (s *session) given(mode profiles.RootsMode) workspace.Dirs {
	if mode == profiles.RootsByContext {
		return workspace.Dirs{}
	}
	return s.roots.Additional()
}

// Describe returns a sentence for a person on how the agent of a session learns of its directories.
// state was saved by the proxy with the session. Describe returns "" if state does not say.
func Describe(state []byte) string {
	switch decodeState(state).RootsMode {
	case profiles.RootsByProtocol:
		return "by the protocol: the agent takes additionalDirectories"
	case profiles.RootsByFlags:
		return "by flags: the agent has a process for these folders"
	case profiles.RootsByContext:
		return "by context: the prompt describes them"
	}
	return ""
}
