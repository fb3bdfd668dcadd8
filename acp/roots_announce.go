package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// rootsEntry is the command as it is announced.
var rootsEntry = sync.OnceValue(func() json.RawMessage {
	return backend.Encode(backend.NewCommand(backend.RootsCommand,
		"Show the session's folders, or add or remove one; asks first",
		"[add DIR | remove DIR]"))
})

// announceRoots returns an announcement of commands with /roots. A backend's command of this name
// is left out.
func announceRoots(u backend.Update) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	const member = "availableCommands"
	list := strictjson.Find(u.Raw, "update", member)
	if mayHaveRoots(list) {
		list = withoutRoots(list)
	}
	list, ok := strictjson.Append(list, rootsEntry())
	if !ok {
		return u
	}
	u.Raw = strictjson.Set(u.Raw, "update",
		strictjson.Set(strictjson.Find(u.Raw, "update"), member, list))
	return u
}

// mayHaveRoots reports whether there may be a command of this name in a list. It does not parse the
// list, because most have none.
func mayHaveRoots(list json.RawMessage) bool {
	return slices.ContainsFunc([]string{`"` + backend.RootsCommand + `"`, `/` +
		backend.RootsCommand + `"`, `\u`}, func(s string) bool {
		return bytes.Contains(list, []byte(s))
	})
}

// withoutRoots returns a list of commands without those of this name.
func withoutRoots(list json.RawMessage) json.RawMessage {
	var commands []json.RawMessage
	if json.Unmarshal(list, &commands) != nil {
		return list
	}
	others := slices.DeleteFunc(slices.Clone(commands), func(c json.RawMessage) bool {
		var name string
		return json.Unmarshal(strictjson.Find(c, "name"), &name) == nil &&
			strings.TrimPrefix(name, "/") == backend.RootsCommand
	})
	if len(others) == len(commands) {
		return list
	}
	list, _ = strictjson.Append(nil, others...)
	return list
}

// announceCommands announces /roots for a backend that has announced no commands, neither now nor
// before.
func (h *host) announceCommands() {
	if h.bufferedKinds()[sessionstore.AvailableCommandsUpdate] {
		return
	}
	states, err := h.agent.options.Store.States(h.agent.base, h.stored)
	if err != nil {
		h.agent.log.Debug("cannot read the announced commands", "session", h.id, "error", err)
		return
	}
	if slices.ContainsFunc(states, func(u sessionstore.Update) bool {
		return u.Kind == sessionstore.AvailableCommandsUpdate
	}) {
		return
	}
	_, _ = h.buffer(
		announceRoots(backend.NewUpdate(
			sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
				AvailableCommands: []sdk.AvailableCommand{},
			}})))
}
