package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/program"
)

func TestS4_ADamagedStoreIsLeftAloneUntilTheUserHasItRepaired(t *testing.T) {
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
	path := filepath.Join(state, "sessions.db")
	damage := []byte(strings.Repeat("this is no database ", 1000))
	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.WriteFile(path, damage, 0o600))
	a := startIn(t, state).initialize()
	opened := map[string]any{"sessionId": "x", "cwd": cwd, "mcpServers": []any{}}
	for method, params := range map[string]any{
		"session/new": opened, "session/load": opened, "session/resume": opened, "session/fork": opened,
		"session/list": map[string]any{}, "session/delete": sessionParams("x"),
	} {
		for range 2 {
			m := a.try(method, params)
			require.NotNil(t, m.Error, method)
			require.Contains(t, m.Error.Message, path, method)
			require.Contains(t, m.Error.Message, `run "acp-agent sessions repair"`, method)
		}
	}
	a.leave()
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, damage, after)
	files, err := filepath.Glob(filepath.Join(state, "sessions*.db"))
	require.NoError(t, err)
	require.Equal(t, []string{path}, files, "nothing was moved away")

	out, err := exec.CommandContext(t.Context(), program.Path(), "--state-dir", state, "sessions", "repair").CombinedOutput()
	require.NoError(t, err, "%s", out)
	kept, err := filepath.Glob(filepath.Join(state, "sessions.damaged-*.db"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	whole, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	require.Equal(t, damage, whole)
	a = startIn(t, state).initialize()
	a.open(cwd)
}
