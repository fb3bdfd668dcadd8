package proxy

import (
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (s *session) lifecycleParams(r opening) (params backend.Raw, err error) {
	if r.mode == profiles.RootsByProtocol {
		params = strictjson.Set(s.params, protocol.AdditionalDirectories,
			backend.Encode(s.roots.Additional()))
	} else {
		params = strictjson.Remove(s.params, protocol.AdditionalDirectories)
	}
	// These requests need mcpServers. The client's own request may not have it.
	needsServers := r.method == backend.New || r.method == backend.Load
	if needsServers && strictjson.Find(params, protocol.MCPServers) == nil {
		params = strictjson.Set(params, protocol.MCPServers, backend.Raw(`[]`))
	}
	if params, err = s.withRelays(params); err != nil {
		return nil, err
	}
	if r.method == backend.New {
		r.state = state{}
	} else {
		params = withSessionID(params, r.state.ID)
	}
	params = s.withToolServer(params, s.toolServer(r.mode, r.state))
	return withSystemPrompt(params, r.systemParts), nil
}

// mcpServers returns the member mcpServers of the params of a lifecycle request, "[]" if it is
// missing or null.
func mcpServers(params backend.Raw) []byte {
	servers := strictjson.Find(params, protocol.MCPServers)
	if servers == nil || string(servers) == "null" {
		return []byte("[]")
	}
	return servers
}

// mcpServer is an entry of mcpServers.
type mcpServer struct {
	Name         string
	Type         *string
	Command      string
	Args         []string
	URL          string
	Env, Headers []sdk.EnvVariable

	raw     json.RawMessage
	isStdio bool
}

// listServers returns the entries of mcpServers. It returns none if they are malformed, because the
// agent will report the error.
func listServers(params backend.Raw) (servers []mcpServer) {
	var entries []json.RawMessage
	if json.Unmarshal(mcpServers(params), &entries) != nil {
		return nil
	}
	for _, entry := range entries {
		server := mcpServer{raw: entry}
		err := json.Unmarshal(entry, &server) // members of the wrong type are left out
		server.isStdio = err == nil && server.Command != "" &&
			(server.Type == nil || *server.Type == "stdio")
		servers = append(servers, server)
	}
	return servers
}

// withSessionID returns params with a session id, which is raw JSON.
func withSessionID(params, id backend.Raw) backend.Raw {
	return strictjson.Set(params, protocol.SessionID, id)
}

// decodeID returns a session id as a string, "" if it is missing or not a string.
func decodeID(id backend.Raw) string {
	var s string
	if len(id) == 0 || json.Unmarshal(id, &s) != nil {
		return ""
	}
	return s
}
