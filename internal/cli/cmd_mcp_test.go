package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// A client's user has allowed a call before it is known what a file loses, or that another one has a
// name that looks the same.
//
// Clause E2.
func TestMCPPermitsNoLosses(t *testing.T) {
	for losses, permitted := range map[workspace.Losses]bool{
		0: true, workspace.LosesLinks: true, workspace.LosesOwner: false, workspace.LosesGroup: false,
		workspace.LosesACL | workspace.LosesLinks: false, workspace.LosesAttributes: false,
	} {
		err := permit(t.Context(), tools.Change{Loses: losses})
		require.Equal(t, permitted, err == nil, "%s", losses)
		err = permit(t.Context(), tools.Change{Loses: losses, Alike: "/app/a\u202fb"})
		require.ErrorContains(t, err, "whose name looks the same: use exactly this name")
	}
}
