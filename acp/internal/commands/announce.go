package commands

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

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

// entries are the adapter's commands as they are announced.
var entries = sync.OnceValue(func() []json.RawMessage {
	return []json.RawMessage{
		backend.Encode(backend.NewCommand(backend.RootsCommand, rootsDescription, rootsHint)),
		backend.Encode(backend.NewCommand(backend.MCPCommand, MCPDescription, MCPHint)),
	}
})

// Announce adds the adapter's commands to an announcement, in place of commands of the backend
// with the same names.
func Announce(u backend.Update) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	const member = "availableCommands"
	list := strictjson.Find(u.Raw, "update", member)
	if mayHaveOwn(list) {
		list = withoutOwn(list)
	}
	list, ok := strictjson.Append(list, entries()...)
	if !ok {
		return u
	}
	u.Raw = strictjson.Set(u.Raw, "update",
		strictjson.Set(strictjson.Find(u.Raw, "update"), member, list))
	return u
}

// mayHaveOwn reports whether a list may contain a command of the adapter. It does not parse the
// list, because most lists contain none.
func mayHaveOwn(list json.RawMessage) bool {
	if bytes.Contains(list, []byte(`\u`)) {
		return true
	}
	return slices.ContainsFunc(backend.AdapterCommands(), func(name string) bool {
		return bytes.Contains(list, []byte(`"`+name+`"`)) ||
			bytes.Contains(list, []byte(`/`+name+`"`))
	})
}

// withoutOwn returns a list of commands without those of the adapter.
func withoutOwn(list json.RawMessage) json.RawMessage {
	var commands []json.RawMessage
	if json.Unmarshal(list, &commands) != nil {
		return list
	}
	others := slices.DeleteFunc(slices.Clone(commands), func(c json.RawMessage) bool {
		var name string
		return json.Unmarshal(strictjson.Find(c, "name"), &name) == nil &&
			slices.Contains(backend.AdapterCommands(), strings.TrimPrefix(name, "/"))
	})
	if len(others) == len(commands) {
		return list
	}
	list, _ = strictjson.Append(nil, others...)
	return list
}
