package briefing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The time must be linear, whatever the agent sends.
//
// Clause P7.
func TestWithoutBlocks(t *testing.T) {
	const blocks = 200_000
	text := strings.Repeat("<acp-agent-context>x</acp-agent-context>\ny", blocks)
	require.Equal(t, strings.Repeat("y", blocks), withoutBlocks(" "+text+" "))
	open := strings.Repeat("<acp-agent-context>", blocks)
	require.Equal(t, open, withoutBlocks(open))
	require.Equal(t, " plain ", withoutBlocks(" plain "))
}
