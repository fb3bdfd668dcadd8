package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Other packages know the commands of this one by a table.
func TestOwnCommandsAreInTheTable(t *testing.T) {
	names := backend.AdapterCommands()
	for _, c := range ownCommands() {
		names = append(names, c.name)
	}
	require.ElementsMatch(t, backend.OwnCommands(Kind), names)
}
