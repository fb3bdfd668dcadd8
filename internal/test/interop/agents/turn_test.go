package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// processes returns the command lines of processes that run with the stage's home, by process id.
func (s *stage) processes(t *testing.T) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("no /proc here")
	}
	found := make(map[int]string)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil || !bytes.Contains(env, []byte("HOME="+s.home+"\x00")) {
			continue // another's, or it has just ended
		}
		command, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		found[pid] = string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
	}
	return found
}

// Clause W7.
func getsPromptDuringTurn(t *testing.T, s *stage, e *editor) again {
	rarely(t, s.subject)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	first := e.startPrompt(made.ID, "Take your time.", modelserver.Wait())
	require.NoError(t, s.model.Waiting(within(t)))
	second := e.startPrompt(made.ID, "And this.", modelserver.Say("I have also done this."))
	e.awaitSent(made.ID)
	require.NoError(t, e.Cancel(within(t), made.ID))
	for _, end := range []func() (sdk.StopReason, error){first, second} {
		reason, err := end()
		require.NoError(t, err)
		require.Equal(t, sdk.StopReasonCancelled, reason)
	}
	// The agent may answer both together.
	first = e.startPrompt(made.ID, "Look at the fruit.", modelserver.Read(fruit(s.first)), modelserver.Say("It is a banana."))
	second = e.startPrompt(made.ID, "And now?", modelserver.Say("Now I have time."))
	for _, end := range []func() (sdk.StopReason, error){first, second} {
		reason, err := end()
		require.NoError(t, err)
		require.Equal(t, sdk.StopReasonEndTurn, reason)
	}
	require.Contains(t, e.heard(made.ID), "Now I have time.")
	require.NotContains(t, e.heard(made.ID), "I have also done this.")
	return nil
}

// startPrompt sends a prompt and returns what waits for the end of its turn.
func (e *editor) startPrompt(session, words string, orders ...modelserver.Order) func() (sdk.StopReason, error) {
	e.t.Helper()
	params, err := json.Marshal(sdk.PromptRequest{
		SessionId: sdk.SessionId(session), Prompt: []sdk.ContentBlock{sdk.TextBlock(modelserver.Prompt(words, orders...))},
	})
	require.NoError(e.t, err)
	work := e.Call(within(e.t), "session/prompt", params)
	return func() (sdk.StopReason, error) {
		var end sdk.PromptResponse
		result, err := work()
		if err == nil {
			err = json.Unmarshal(result, &end)
		}
		return end.StopReason, err
	}
}

// awaitSent waits until the agent has read the prompts that were started: it answers another
// request, with an error.
func (e *editor) awaitSent(session string) {
	_, _ = e.Call(within(e.t), "session/set_mode", []byte(`{"sessionId":"`+session+`","modeId":"none"}`))()
}
