package profiles

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page tells users how to install and start each agent that is tested under its own name.
func TestAgentsPageInstallsAndStarts(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agents.md")
	require.NoError(t, err)
	found := 0
	for _, p := range Known() {
		if p.Checked == "" || p.Name == "auggie" { // which starts, but needs an account
			continue
		}
		found++
		row := ""
		for line := range strings.Lines(string(page)) {
			if strings.Contains(line, "| `acp-agent --agent "+p.Name+"` |") {
				row = line
			}
		}
		require.Contains(t, row, "["+p.Title+"](")
		require.Contains(t, row, strings.TrimPrefix(p.Start.Install, "see "))
	}
	require.Greater(t, found, 9)
}
