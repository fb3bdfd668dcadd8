package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Members of agentCapabilities with capabilities that the adapter has a part in.
const (
	mcpCapabilities     = "mcpCapabilities"
	sessionCapabilities = "sessionCapabilities"
)

// agentCapabilities returns the capabilities of the backend that the client is told, together with
// the adapter's.
func agentCapabilities(
	given json.RawMessage, info backend.Info, g RemoteRights,
) (json.RawMessage, mcpTransports) {
	if !strictjson.IsObject(given) {
		given = json.RawMessage(`{}`)
	}
	given = g.capabilities(given, "")
	mcp := strictjson.Find(given, mcpCapabilities)
	switch {
	case !info.ConnectsServers:
		mcp = json.RawMessage(`{"http":true,"sse":false}`)
	case mcp == nil:
		mcp = json.RawMessage(`{"http":false,"sse":false}`)
	}
	sessions := strictjson.Find(given, sessionCapabilities)
	for _, c := range protocol.AgentCapabilities() {
		name, ok := strings.CutPrefix(c.Path, sessionCapabilities+".")
		if ok && c.Handling == protocol.Served {
			sessions = strictjson.Set(sessions, name, json.RawMessage(`{}`))
		}
	}
	if info.SystemPrompts == backend.SystemPromptsServed {
		sessions = strictjson.Set(sessions, protocol.SystemPrompt,
			json.RawMessage(`{"mode":{"override":{}}}`))
	}
	given = strictjson.Set(given, mcpCapabilities, mcp)
	given = strictjson.Set(given, sessionCapabilities, sessions)
	given = strictjson.Set(given, "loadSession", json.RawMessage(`true`))
	return given, mcpTransports{http: isTrue(strictjson.Find(mcp, "http")),
		sse: isTrue(strictjson.Find(mcp, "sse"))}
}

// capabilities returns the capabilities in an object that the client is told of. path is that of
// the object, with a dot at its end, or "". The adapter refuses MCP servers of unknown types, and
// does not know which ids, folders and servers the messages of an unknown capability for sessions
// contain. The messages of others pass unread.
func (g RemoteRights) capabilities(object json.RawMessage, path string) json.RawMessage {
	table := protocol.AgentCapabilities()
	for name, value := range members(object) {
		at, offers := path+name, g.Extensions
		i := slices.IndexFunc(table, func(c protocol.AgentCapability) bool { return c.Path == at })
		group := slices.ContainsFunc(table, func(c protocol.AgentCapability) bool {
			return strings.HasPrefix(c.Path, at+".")
		})
		switch {
		case i >= 0:
			offers = table[i].Handling != protocol.Refused && (!table[i].Account || g.Account) &&
				(!group || strictjson.IsObject(value))
		case name != "_meta" && (path == mcpCapabilities+"." || path == sessionCapabilities+"."):
			offers = false
		}
		switch {
		case !offers:
			object = strictjson.Remove(object, name)
		case group:
			object = strictjson.Set(object, name, g.capabilities(value, at+"."))
		}
	}
	return object
}
