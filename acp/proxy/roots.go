package proxy

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
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

// rootsMode returns how an agent with these capabilities is given roots, and the flags for
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

// paramsWithRoots returns the params of a lifecycle request with the additional directories, each
// once, if the child takes them by the protocol, and without them otherwise. A child that takes
// them is always sent the list, except by a session/new of a client that left it out.
func paramsWithRoots(params backend.Raw, mode RootsMode, method backend.Cause, roots workspace.Roots) (backend.Raw, error) {
	given, without, err := strictjson.Take(params, protocol.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	if mode == RootsByProtocol && (given != nil || method != backend.New) {
		params, err = strictjson.Put(params, protocol.AdditionalDirectories, backend.Encode(roots.Additional()))
		if err != nil {
			return nil, err
		}
	} else {
		params = without
	}
	if method != backend.New && method != backend.Load {
		return params, nil
	}
	// These requests need mcpServers. The client may have sent one that does not.
	if servers, _, err := strictjson.Take(params, protocol.MCPServers); err != nil || servers != nil {
		return params, err
	}
	return strictjson.Put(params, protocol.MCPServers, backend.Raw(`[]`))
}
