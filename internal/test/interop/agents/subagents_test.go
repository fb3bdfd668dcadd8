package agents

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// The editor sees what the subagents of real agents do if it understands that, also after a load,
// and otherwise what the agent shows of their work in the session.
//
// Clause A36.
func TestSubagentsOfRealAgents(t *testing.T) {
	t.Parallel()
	for _, delegation := range []struct {
		subject
		server string // which has the tool
		tool   string
		prompt string // the argument with the task
		more   map[string]string
		inline string // what the session shows of the work
	}{
		{claude, "", "Agent", "prompt", map[string]string{"description": "Look", "subagent_type": "general-purpose"}, "It is a banana."},
		{codex, "multi_agent_v1", "spawn_agent", "message", nil, "spawnAgent"},
	} {
		t.Run(delegation.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, delegation.subject)
			s := onStage(t, delegation.subject)
			task := modelserver.Prompt("Which fruit?", modelserver.Read(fruit(s.first)), modelserver.Say("It is a banana."))
			arguments := map[string]string{delegation.prompt: task}
			for name, value := range delegation.more {
				arguments[name] = value
			}
			raw, err := json.Marshal(arguments)
			require.NoError(t, err)
			delegate := []modelserver.Order{modelserver.UseWith(delegation.tool, string(raw)).By(delegation.server), modelserver.Say("Done.")}
			setup := client.Setup{Roots: s.roots(t, s.first)}

			t.Run("a client that declares nothing", func(t *testing.T) {
				e := s.behind(t, noFiles)
				made, err := e.NewSession(within(t), setup)
				require.NoError(t, err)
				s.prompt(e, made.ID, "Ask someone.", delegate...)
				require.NotContains(t, e.heard(made.ID), "subagent_update")
				e.awaitHeard(made.ID, delegation.inline)
				require.Equal(t, []string{made.ID}, e.sessions())
			})
			t.Run("a client that declares subagents", func(t *testing.T) {
				s := *s
				s.declares = json.RawMessage(`{"subagents":{}}`)
				e := s.behind(t, noFiles)
				made, err := e.NewSession(within(t), setup)
				require.NoError(t, err)
				s.prompt(e, made.ID, "Ask someone.", delegate...)
				e.awaitHeard(made.ID, `"state":"idle"`)
				require.Len(t, e.sessions(), 2)
				subagent := e.sessions()[1]
				require.True(t, strings.HasPrefix(subagent, made.ID+"."), subagent)
				require.Contains(t, e.heard(subagent), "It is a banana.")
				require.Contains(t, e.heard(made.ID), subagent)
				e.leave()

				again := s.behind(t, noFiles)
				_, err = again.LoadSession(within(t), made.ID, setup)
				require.NoError(t, err)
				require.ElementsMatch(t, []string{made.ID, subagent}, again.sessions())
				require.Contains(t, again.heard(subagent), "It is a banana.")
				require.Contains(t, again.heard(made.ID), subagent)
				listed := again.listed(client.Query{})
				require.Contains(t, listed, made.ID)
				require.Len(t, listed, 2, "this session and that of the other client")
			})
		})
	}
}

// awaitHeard waits until a session's updates contain a text.
func (e *editor) awaitHeard(session, text string) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return strings.Contains(e.heard(session), text) },
		patience, 10*time.Millisecond, text)
}

// sessions returns the ids in the updates so far, in order.
func (e *editor) sessions() (ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := make(map[string]bool)
	for _, u := range e.updates {
		if !seen[u.SessionID] {
			seen[u.SessionID] = true
			ids = append(ids, u.SessionID)
		}
	}
	return ids
}
