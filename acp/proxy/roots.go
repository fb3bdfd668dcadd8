package proxy

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

const rootsMember = "additionalDirectories"

// rootsIn reads the roots in the params of a lifecycle request.
func rootsIn(params backend.Raw) (workspace.Roots, error) {
	var given struct {
		Cwd        string   `json:"cwd"`
		Additional []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(params, &given); err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(given.Cwd, given.Additional)
}

// way is how a child with these capabilities is given roots, and with what flags.
func way(p Profile, a client.Agent, roots workspace.Roots) (RootsMode, []string) {
	flags, flagged := p.flags(roots.Additional())
	switch {
	case a.AdditionalDirectories && (p.Roots == RootsAuto || p.Roots == RootsByProtocol):
		return RootsByProtocol, nil
	case flagged && (p.Roots == RootsAuto || p.Roots == RootsByFlags):
		return RootsByFlags, flags
	}
	return RootsByContext, nil
}

// fitted are the params of a lifecycle request as the child can have them. A child that takes roots by the
// protocol is sent each once (P2), another none. A request other than session/new always says which (P3).
func fitted(w RootsMode, method backend.Cause, params backend.Raw, roots workspace.Roots) (backend.Raw, error) {
	given, without, err := strictjson.Take(params, rootsMember)
	if err != nil {
		return nil, err
	}
	if w == RootsByProtocol && (given != nil || method != backend.New) {
		list, err := json.Marshal(roots.Additional())
		if err != nil {
			return nil, err
		}
		params, err = strictjson.Put(params, rootsMember, list)
		if err != nil {
			return nil, err
		}
	} else {
		params = without
	}
	if method != backend.New && method != backend.Load {
		return params, nil
	}
	// The client may have asked for something else, which does not need the member.
	if servers, _, err := strictjson.Take(params, serversMember); err != nil || servers != nil {
		return params, err
	}
	return strictjson.Put(params, serversMember, backend.Raw(`[]`))
}
