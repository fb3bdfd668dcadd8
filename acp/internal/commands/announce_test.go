package commands_test

import (
	"encoding/json"
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
	own := []string{backend.RootsCommand, backend.MCPCommand}
	u := announcement("plan", "/roots")
	require.Equal(t, backend.MCPCommand, commands.Name(u, backend.MCPCommand))
	u = commands.Announce(u, backend.RootsCommand, backend.MCPCommand)
	require.Equal(t, append([]string{"plan"}, own...), names(t, u))
	require.Equal(t, backend.MCPCommand, commands.Name(u, backend.MCPCommand), "once it is stored")

	for _, command := range []string{backend.MCPCommand, backend.PermissionsCommand} {
		u, other := announcement("/"+command), backend.OtherName(command)
		require.Equal(t, other, commands.Name(u, command))
		require.Equal(t, []string{"/" + command, backend.RootsCommand, other},
			names(t, commands.Announce(u, backend.RootsCommand, other)))
	}
	other := backend.Text("/mcp")
	require.Equal(t, other, commands.Announce(other, backend.RootsCommand, backend.MCPCommand))
}
