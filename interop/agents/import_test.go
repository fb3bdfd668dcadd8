package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/interop/modelserver"
)

func TestA31_WhatARealAgentHasAlreadyIsListed(t *testing.T) {
	for _, s := range []subject{opencode, claude} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s := onStage(t, s)
			alone := s.alone(t, noFiles)
			made, err := alone.NewSession(within(t), client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			s.prompt(alone, made.ID, "Before acp-agent.", modelserver.Say("It was long ago."))
			alone.leave()

			e := s.behind(t, noFiles)
			ids := e.listed(client.Query{Cwd: s.roots(t).Cwd()})
			require.Len(t, ids, 1)
			_, err = e.LoadSession(within(t), ids[0], client.Setup{Roots: s.roots(t, s.first)})
			require.NoError(t, err)
			require.Contains(t, e.heard(ids[0]), "It was long ago.", "A27")
			turn := s.prompt(e, ids[0], "And since?", modelserver.Say("Since then as well."))
			require.Contains(t, turn[0].Text(), "It was long ago.", "the model is told of the conversation")
			require.Contains(t, turn[0].Text(), s.first, "and of the folders that it has now")
			require.Equal(t, ids, e.listed(s.query(t, s.first)), "A13")
			require.NoError(t, e.DeleteSession(within(t), ids[0]))
			e.leave()

			require.Empty(t, s.behind(t, noFiles).listed(client.Query{}), "A28: what was deleted does not come back")
		})
	}
}
