package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/interop/modelserver"
)

func TestAMultiRootSessionWithARealAgent(t *testing.T) {
	for _, s := range []subject{opencode, claude} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			multiRoot(t, onStage(t, s))
		})
	}
}

func multiRoot(t *testing.T, s *stage) {
	var id string
	t.Run("A9/the agent works in additional roots", func(t *testing.T) {
		e := s.behind(t, noFiles)
		require.True(t, e.agent.AdditionalDirectories, "A1")
		made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
		require.NoError(t, err)
		id = made.ID
		turn := s.prompt(e, id, "Please mend the fruit.", modelserver.Read(fruit(s.first)),
			modelserver.Edit(fruit(s.first), "banana", "cherry"), modelserver.Say("The fruit is mended."))
		require.Equal(t, "cherry\n", content(t, s.first))
		require.Contains(t, turn[0].Text(), s.first, "the model is told of its roots")
		require.Contains(t, turn[0].Text(), s.second)
		require.Contains(t, e.heard(id), "The fruit is mended.")
		require.Contains(t, e.permissions(), s.first, "A30: it asked before it wrote")
		require.NotContains(t, e.heard(id), "acp-agent-context", "P7: what the agent alone was told is no history")
	})
}
