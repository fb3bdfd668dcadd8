package commands_test

import (
	"encoding/json"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/strictjson"
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
// agent keeps its own /mcp.
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
	require.Equal(t, backend.MCPCommand, commands.MCPName(u))
	u = commands.Announce(u, backend.RootsCommand, backend.MCPCommand)
	require.Equal(t, append([]string{"plan"}, own...), names(t, u))
	require.Equal(t, backend.MCPCommand, commands.MCPName(u), "once it is stored")

	u = announcement("/mcp")
	require.Equal(t, backend.MCPServersCommand, commands.MCPName(u))
	require.Equal(t, []string{"/mcp", backend.RootsCommand, backend.MCPServersCommand},
		names(t, commands.Announce(u, backend.RootsCommand, backend.MCPServersCommand)))
	other := backend.Text("/mcp")
	require.Equal(t, other, commands.Announce(other, backend.RootsCommand, backend.MCPCommand))
}
