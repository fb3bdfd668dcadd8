package commands_test

import (
	"encoding/json"
	"slices"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func names(t *testing.T, u backend.Update) (all []string) {
	t.Helper()
	var list []struct{ Name string }
	require.NoError(t, json.Unmarshal(strictjson.Find(u.Raw, "update", "availableCommands"), &list))
	for _, c := range list {
		all = append(all, c.Name)
	}
	return all
}

// The adapter answers its commands, so it also describes them, however the backend spells them. An
// agent keeps its own /mcp and /permissions.
func TestOwnCommandsReplaceTheBackends(t *testing.T) {
	announcement := func(list ...string) backend.Update {
		entries := []sdk.AvailableCommand{}
		for _, name := range list {
			entries = append(entries, backend.NewCommand(name, "of the backend", ""))
		}
		return backend.NewUpdate(sdk.SessionAvailableCommandsUpdate{
			SessionUpdate:     string(sessionstore.AvailableCommandsUpdate),
			AvailableCommands: entries,
		})
	}
	own := []string{backend.RootsCommand, backend.MCPCommand, backend.ForkCommand, backend.DiffCommand,
		backend.PermissionsCommand}
	u, theirs := commands.Announce(announcement("plan", "/roots"), false)
	require.Equal(t, append([]string{"plan"}, own...), names(t, u))
	require.Empty(t, theirs)
	again, theirs := commands.Announce(u, false)
	require.Equal(t, names(t, u), names(t, again), "once it is stored")
	require.Empty(t, theirs)

	for _, command := range []string{backend.MCPCommand, backend.PermissionsCommand} {
		u, theirs := commands.Announce(announcement("/"+command), false)
		require.Equal(t, []string{command}, theirs)
		want := slices.Clone(own)
		want[slices.Index(want, command)] = backend.OtherName(command)
		require.Equal(t, append([]string{"/" + command}, want...), names(t, u))
	}
	u, _ = commands.Announce(announcement(backend.WorktreeCommand), false)
	require.Equal(t, append([]string{backend.WorktreeCommand}, own...), names(t, u), "there is none of ours")
	u, _ = commands.Announce(announcement(backend.WorktreeCommand), true)
	require.Len(t, names(t, u), len(own)+1)
	spelled, err := backend.ParseUpdate(backend.Raw(`{"update":{"sessionUpdate":"available_commands_update",` +
		`"availableCommands":[{"name":"\/r\u006fots"},{"name":"\/mcp-servers"},{"name":"x","description":"<é>"}],"_meta":{"k":1}}}`))
	require.NoError(t, err)
	u, _ = commands.Announce(spelled, false)
	require.Equal(t, append([]string{"x"}, own...), names(t, u))
	require.Contains(t, string(u.Raw), `{"name":"x","description":"<é>"}`, "the backend's stay as they are")
	require.Contains(t, string(u.Raw), `"_meta":{"k":1}`)
	other := backend.Text("/mcp")
	same, _ := commands.Announce(other, true)
	require.Equal(t, other, same)
}
