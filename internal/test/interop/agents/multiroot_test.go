package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// onlyForTheAgent marks text about the roots that only the agent receives.
const onlyForTheAgent = "acp-agent-context"

// multiRoot works in several roots, and goes on with others in another process.
func multiRoot(t *testing.T, s *stage, e *editor) again {
	require.True(t, e.agent.AdditionalDirectories, "A1")
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	require.NoError(t, err)
	id := made.ID
	t.Run("A9/the agent works in additional roots", func(t *testing.T) {
		turn := s.prompt(e, id, "Please mend the fruit.", modelserver.Read(fruit(s.first)),
			modelserver.Edit(fruit(s.first), "banana", "cherry"), modelserver.Say("The fruit is mended."))
		require.Equal(t, "cherry\n", content(t, s.first))
		require.Contains(t, turn[1].Of(modelserver.Result)[0], "banana")
		require.Contains(t, turn[0].Text(), s.first, "the model is told of its roots")
		require.Contains(t, turn[0].Text(), s.second)
		require.Contains(t, e.heard(id), "The fruit is mended.")
		require.Contains(t, e.permissions(), s.first, "A30: it asked before it wrote")
		require.NotContains(t, e.heard(id), onlyForTheAgent, "P7: what the agent alone was told is no history")
		require.Empty(t, e.written, "A26: an editor that does not write files is not asked to")
	})
	return func(t *testing.T, e *editor) { multiRootAgain(t, s, e, id) }
}

// multiRootAgain goes on with the session of multiRoot.
func multiRootAgain(t *testing.T, s *stage, e *editor, id string) {
	var forked string
	here := client.Query{Cwd: s.roots(t).Cwd()}
	// only leaves one session open: opencode gets another process for two, which takes seconds.
	only := func(t *testing.T, before string) {
		if s.subject.name == opencode.name && !*survey {
			require.NoError(t, e.CloseSession(within(t), before))
		}
	}
	t.Run("A10/load finds it by its roots, and brings the conversation back with others", func(t *testing.T) {
		require.Equal(t, []string{id}, e.listed(s.query(t, s.first, s.second)), "A16")
		require.Empty(t, e.listed(s.query(t, s.second, s.first)), "A16")
		require.True(t, e.agent.Load, "A1")
		_, err := e.LoadSession(within(t), id, client.Setup{Roots: s.roots(t, s.second)})
		require.NoError(t, err)
		require.Contains(t, e.heard(id), "Please mend the fruit.", "A27")
		require.Contains(t, e.heard(id), "The fruit is mended.", "A27")
		require.NotContains(t, e.heard(id), onlyForTheAgent, "P7")
		require.Equal(t, []string{id}, e.listed(s.query(t, s.second)), "A13")
		turn := s.prompt(e, id, "And the other one.", modelserver.Read(fruit(s.second)),
			modelserver.Edit(fruit(s.second), "banana", "damson"), modelserver.Say("So is the other."))
		require.Equal(t, "damson\n", content(t, s.second))
		require.Contains(t, turn[0].Text(), "The fruit is mended.", "the model is told of the conversation")
	})
	t.Run("A14/fork", func(t *testing.T) {
		only(t, id)
		require.True(t, e.agent.Fork, "A1")
		made, err := e.ForkSession(within(t), id, client.Setup{Roots: s.roots(t, s.first)})
		require.NoError(t, err)
		forked = made.ID
		require.NotEqual(t, id, forked)
		require.NotContains(t, e.heard(forked), "The fruit is mended.", "A27: a fork replays nothing")
		require.Equal(t, []string{forked}, e.listed(s.query(t, s.first)))
		require.Equal(t, []string{id}, e.listed(s.query(t, s.second)))
		require.ElementsMatch(t, []string{id, forked}, e.listed(here), "the agent's own sessions are these")
		turn := s.prompt(e, forked, "What was it about?", modelserver.Say("About fruit."))
		require.Contains(t, turn[0].Text(), "So is the other.", "the model is told of the conversation")
	})
	t.Run("A10/resume leaves no roots of which it does not speak", func(t *testing.T) {
		only(t, forked)
		e.lend(t)
		require.True(t, e.agent.Resume, "A1")
		_, err := e.ResumeSession(within(t), id, client.Setup{Roots: s.roots(t)})
		require.NoError(t, err)
		require.NotContains(t, e.heard(id), "The fruit is mended.", "A27: a resume replays nothing")
		require.Equal(t, []string{id}, e.listed(s.query(t)))
		turn := s.prompt(e, id, "Are you there?", modelserver.Say("Still here."))
		require.Contains(t, turn[0].Text(), "So is the other.", "the model is told of the conversation")
		require.NotContains(t, turn[0].Text(), "About fruit.", "A14: the source is as it was")
	})
	t.Run("A28/delete", func(t *testing.T) {
		e.lend(t)
		require.True(t, e.agent.Delete, "A1")
		require.NoError(t, e.DeleteSession(within(t), id))
		require.Equal(t, []string{forked}, e.listed(here))
	})
}

// query returns a filter for the sessions in cwd with these additional roots.
func (s *stage) query(t *testing.T, additional ...string) client.Query {
	t.Helper()
	roots := s.roots(t, additional...)
	list := roots.Additional()
	return client.Query{Cwd: roots.Cwd(), Additional: &list}
}
