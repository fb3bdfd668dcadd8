package commands

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// member is the list of commands in an announcement.
const member = "availableCommands"

// Name returns the name that a command of the adapter has beside the commands of an announcement:
// its [backend.OtherName] if the backend has a command of that name. A stored announcement has the
// adapter's commands too, which are told by their descriptions.
func Name(u backend.Update, command string) string {
	list := strictjson.Find(u.Raw, "update", member)
	if !mayHave(list, command) {
		return command
	}
	var commands []struct{ Name, Description string }
	_ = json.Unmarshal(list, &commands) // a list that cannot be read has none
	ours := backend.AdapterCommand(command).Description
	for _, c := range commands {
		if strings.TrimPrefix(c.Name, "/") == command && c.Description != ours {
			return backend.OtherName(command)
		}
	}
	return command
}

// Announce adds commands of the adapter to an announcement, in place of commands of the backend
// with the same names.
func Announce(u backend.Update, names ...string) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	list := strictjson.Find(u.Raw, "update", member)
	own := slices.DeleteFunc(backend.AdapterCommands(), func(name string) bool {
		mayBeTheirs := name == backend.WorktreeCommand || backend.OtherName(name) != name
		return mayBeTheirs && !slices.Contains(names, name)
	})
	if mayHave(list, own...) {
		list = without(list, own)
	}
	var entries []json.RawMessage
	for _, name := range names {
		entries = append(entries, backend.Encode(backend.AdapterCommand(name)))
	}
	list, ok := strictjson.Append(list, entries...)
	if !ok {
		return u
	}
	u.Raw = strictjson.SetAt(u.Raw, list, "update", member)
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
