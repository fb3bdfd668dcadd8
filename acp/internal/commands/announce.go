package commands

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What clients show of the commands.
const (
	rootsDescription = "Show the session's folders, or add or remove one; asks first"
	rootsHint        = "[add DIR | remove DIR]"
	MCPDescription   = "List the MCP servers, list what they offer, start one configured in a " +
		"folder (asks first), or read a resource"
	MCPHint = "[tools | start NAME | read SERVER URI]"
)

// member is the list of commands in an announcement.
const member = "availableCommands"

// entries returns the adapter's commands as they are announced. mcp is the name of that about MCP
// servers.
func entries(mcp string) []json.RawMessage {
	return []json.RawMessage{
		backend.Encode(backend.NewCommand(backend.RootsCommand, rootsDescription, rootsHint)),
		backend.Encode(backend.NewCommand(mcp, MCPDescription, MCPHint)),
	}
}

// MCPName returns the name that the adapter's command about MCP servers has beside the commands of
// an announcement: [backend.MCPCommand], unless the backend has a command of that name. A stored
// announcement has the adapter's commands too, which are told by their descriptions.
func MCPName(u backend.Update) string {
	list := strictjson.Find(u.Raw, "update", member)
	if !mayHave(list, backend.MCPCommand) {
		return backend.MCPCommand
	}
	var commands []struct{ Name, Description string }
	_ = json.Unmarshal(list, &commands) // a list that cannot be read has none
	for _, c := range commands {
		if strings.TrimPrefix(c.Name, "/") == backend.MCPCommand && c.Description != MCPDescription {
			return backend.MCPServersCommand
		}
	}
	return backend.MCPCommand
}

// Announce adds the adapter's commands to an announcement, in place of commands of the backend
// with the same names. mcp is the name of the command about MCP servers.
func Announce(u backend.Update, mcp string) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	list := strictjson.Find(u.Raw, "update", member)
	own := slices.DeleteFunc(backend.AdapterCommands(), func(name string) bool {
		return name == backend.MCPCommand && name != mcp // it is the agent's
	})
	if mayHave(list, own...) {
		list = without(list, own)
	}
	list, ok := strictjson.Append(list, entries(mcp)...)
	if !ok {
		return u
	}
	u.Raw = strictjson.Set(u.Raw, "update",
		strictjson.Set(strictjson.Find(u.Raw, "update"), member, list))
	return u
}

// mayHave reports whether a list may contain a command with one of these names. It does not parse
// the list, because most lists contain none.
func mayHave(list json.RawMessage, names ...string) bool {
	if bytes.Contains(list, []byte(`\u`)) {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return bytes.Contains(list, []byte(`"`+name+`"`)) ||
			bytes.Contains(list, []byte(`/`+name+`"`))
	})
}

// without returns a list of commands without those with these names.
func without(list json.RawMessage, names []string) json.RawMessage {
	var commands []json.RawMessage
	if json.Unmarshal(list, &commands) != nil {
		return list
	}
	others := slices.DeleteFunc(slices.Clone(commands), func(c json.RawMessage) bool {
		var name string
		return json.Unmarshal(strictjson.Find(c, "name"), &name) == nil &&
			slices.Contains(names, strings.TrimPrefix(name, "/"))
	})
	if len(others) == len(commands) {
		return list
	}
	list, _ = strictjson.Append(nil, others...)
	return list
}
