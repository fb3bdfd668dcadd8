package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// seen is the output of the TypeScript client.
type seen struct {
	Asked []struct{ Locations []struct{ Path string } }
	Made  struct{ SessionID, StopReason string }

	Loaded struct {
		Before, After []string
		Replay        string
	}
	Forked struct {
		SessionID string
		Listed    []string
	}
}

func TestTheTypeScriptClientWithARealAgentBehind(t *testing.T) {
	t.Parallel()
	s := onStage(t, claude)
	script, err := filepath.Abs(filepath.Join(packages, "../client.mjs"))
	require.NoError(t, err)
	prompt := modelserver.Prompt("Please mend the fruit.", modelserver.Read(fruit(s.first)),
		modelserver.Edit(fruit(s.first), "banana", "cherry"), modelserver.Say("The fruit is mended."))
	args := append([]string{script, s.cwd, s.first, s.second, prompt, "--", program.Path(), "--state-dir", s.state, "--"},
		s.subject.command...)
	cmd := exec.CommandContext(within(t), filepath.Join(s.home, "bin/node"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), s.env...), &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	var got seen
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &got), "%s", &stdout)

	t.Run("A9/the agent edits a file in an additional root", func(t *testing.T) {
		require.Equal(t, "end_turn", got.Made.StopReason)
		require.Equal(t, "cherry\n", content(t, s.first))
		require.NotEmpty(t, got.Asked)
		require.Equal(t, fruit(s.first), got.Asked[0].Locations[0].Path, "A30")
	})
	id := []string{got.Made.SessionID}
	t.Run("A16/the session is found by its roots", func(t *testing.T) { require.Equal(t, id, got.Loaded.Before) })
	t.Run("A10/a load has other roots", func(t *testing.T) { require.Equal(t, id, got.Loaded.After) })
	t.Run("A27/a load replays", func(t *testing.T) { require.Contains(t, got.Loaded.Replay, "The fruit is mended.") })
	t.Run("A14/a fork has its own", func(t *testing.T) {
		require.NotEqual(t, got.Made.SessionID, got.Forked.SessionID)
		require.Equal(t, []string{got.Forked.SessionID}, got.Forked.Listed)
	})
}
