package commands

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Announce adds the commands of the adapter to an announcement of the backend, in place of commands
// of the backend with the same names. Where a command has a [backend.OtherName], the backend keeps
// its own: theirs are the names of these. A stored announcement has the adapter's commands too,
// which are told by their descriptions. worktrees says whether there is a /worktree.
func Announce(u backend.Update, worktrees bool) (_ backend.Update, theirs []string) {
	var list []json.RawMessage
	raw := strictjson.Find(u.Body(), "availableCommands")
	if u.Kind != sessionstore.AvailableCommandsUpdate || json.Unmarshal(raw, &list) != nil {
		return u, nil
	}
	others := slices.DeleteFunc(slices.Clone(list), func(c json.RawMessage) bool {
		var said struct{ Name, Description string }
		_ = json.Unmarshal(c, &said) // ours can all be read
		name := strings.TrimPrefix(said.Name, "/")
		own := backend.AdapterCommand(name)
		switch {
		case own.Name == "" || own.Description == said.Description:
			return own.Name != ""
		case backend.OtherName(name) != name:
			theirs = append(theirs, name)
			return false
		}
		return name != backend.WorktreeCommand || worktrees
	})
	if len(others) < len(list) { // otherwise it stays as it was sent
		raw, _ = strictjson.Append(nil, others...)
	}
	var own []json.RawMessage
	for _, name := range []string{backend.RootsCommand, backend.MCPCommand, backend.WorktreeCommand,
		backend.ForkCommand, backend.DiffCommand, backend.PermissionsCommand} {
		if name == backend.WorktreeCommand && !worktrees {
			continue
		}
		if slices.Contains(theirs, name) {
			name = backend.OtherName(name)
		}
		own = append(own, backend.Encode(backend.AdapterCommand(name)))
	}
	raw, _ = strictjson.Append(raw, own...)
	u.Raw = strictjson.SetAt(u.Raw, raw, "update", "availableCommands")
	return u, theirs
}
