package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// ownEntries are the adapter's commands as they are announced.
var ownEntries = sync.OnceValue(func() []json.RawMessage {
	return []json.RawMessage{
		backend.Encode(backend.NewCommand(backend.RootsCommand,
			"Show the session's folders, or add or remove one; asks first",
			"[add DIR | remove DIR]")),
		backend.Encode(explore.MCPCommand()),
	}
})

// announceOwn adds the adapter's commands to an announcement, in place of commands of the backend
// with the same names.
func announceOwn(u backend.Update) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	const member = "availableCommands"
	list := strictjson.Find(u.Raw, "update", member)
	if mayHaveOwn(list) {
		list = withoutOwn(list)
	}
	list, ok := strictjson.Append(list, ownEntries()...)
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

// announceCommands announces the adapter's commands for a backend that has not announced any
// commands.
func (h *host) announceCommands() {
	if h.bufferedKinds()[sessionstore.AvailableCommandsUpdate] || h.hasStoredCommands() {
		return
	}
	_, _ = h.buffer(
		announceOwn(backend.NewUpdate(
			sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
				AvailableCommands: []sdk.AvailableCommand{},
			}})))
}

// hasStoredCommands reports whether commands of the backend are stored, or cannot be read.
func (h *host) hasStoredCommands() bool {
	if h.isNew {
		return false
	}
	states, err := h.agent.options.Store.States(h.agent.base, h.stored)
	if err != nil {
		h.agent.log.Debug("cannot read the announced commands", "session", h.id, "error", err)
	}
	return err != nil || slices.ContainsFunc(states, func(u sessionstore.Update) bool {
		return u.Kind == sessionstore.AvailableCommandsUpdate
	})
}
