package acp

import (
	"encoding/json"
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
	given json.RawMessage, info backend.Info, g Grants,
) (json.RawMessage, mcpTransports) {
	if !strictjson.IsObject(given) {
		given = json.RawMessage(`{}`)
	}
	given = offerer{g, capabilityRows()}.offered(given, "")
	own := members(given)
	mcp := own[mcpCapabilities]
	switch {
	case info.MCP == backend.AdapterConnects:
		mcp = json.RawMessage(`{"http":true,"sse":false}`)
	case mcp == nil:
		mcp = json.RawMessage(`{"http":false,"sse":false}`)
	}
	sessions := own[sessionCapabilities]
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
	kinds := members(mcp)
	return given, mcpTransports{http: isTrue(kinds["http"]), sse: isTrue(kinds["sse"])}
}

// capabilityRow is a row of the table of agent capabilities.
type capabilityRow struct {
	protocol.AgentCapability
	group bool // it has members
}

// capabilityRows returns the table by path.
func capabilityRows() map[string]*capabilityRow {
	rows := make(map[string]*capabilityRow)
	for _, c := range protocol.AgentCapabilities() {
		rows[c.Path] = &capabilityRow{AgentCapability: c}
		if dot := strings.LastIndexByte(c.Path, '.'); dot >= 0 {
			rows[c.Path[:dot]].group = true
		}
	}
	return rows
}

// offerer decides what the client is told of a backend's capabilities.
type offerer struct {
	grants Grants
	rows   map[string]*capabilityRow
}

// offered returns the capabilities in an object that the client is told of. path is that of the
// object, with a dot at its end, or "".
func (o offerer) offered(object json.RawMessage, path string) json.RawMessage {
	for name, value := range members(object) {
		row := o.rows[path+name]
		switch {
		case !o.offers(path, name) || row != nil && row.group && !strictjson.IsObject(value):
			_, object, _ = strictjson.Take(object, name) // it is an object
		case row != nil && row.group:
			object = strictjson.Set(object, name, o.offered(value, path+name+"."))
		}
	}
	return object
}

// offers reports whether the client is told of the member of the object with this path. The
// adapter refuses MCP servers of unknown types, and does not know which ids, folders and servers the
// messages of an unknown capability for sessions contain. The messages of others pass unread.
func (o offerer) offers(path, name string) bool {
	row := o.rows[path+name]
	switch {
	case row != nil:
		return row.Handling != protocol.Refused && (!row.Account || o.grants.Account)
	case name == "_meta":
		return o.grants.Extensions
	case path == mcpCapabilities+".", path == sessionCapabilities+".":
		return false
	}
	return o.grants.Extensions
}
