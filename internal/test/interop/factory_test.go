package interop

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// acp-factory names no folders, so its sessions and their forks have the declared ones. The fork of
// its README names no directory either: the error says what to send.
func TestFactoryForks(t *testing.T) {
	t.Parallel()
	packages := filepath.Dir(npmtest.File(t, "testdata/node-clients", "acp-factory"))
	state, cwd, lib := filepath.Join(t.TempDir(), "state"), folder(t, "a.txt", "tangerine\n"), folder(t)
	cmd := exec.CommandContext(within(t), npmtest.Node(t), filepath.Join(filepath.Dir(packages), "factory.mjs"),
		cwd, program.Path(), "--state-dir", state, "--dir", lib)
	out, err := cmd.Output()
	require.NoError(t, err)
	var found struct {
		Session, Refused, Loaded string
		Forks                    []string
	}
	require.NoError(t, json.Unmarshal(out, &found), "%s", out)
	require.Equal(t, found.Session, found.Loaded)
	require.Equal(t, "cwd is missing: give an absolute path", found.Refused)

	a := startIn(t, state).initialize()
	ids, made := append(found.Forks, found.Session), []listed{}
	for _, id := range ids {
		made = append(made, listed{SessionID: id, Cwd: cwd, AdditionalDirectories: []string{lib}})
	}
	require.ElementsMatch(t, made, a.list(nil))
	for _, id := range ids {
		from := a.Count()
		a.call("session/load", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}, nil)
		require.Contains(t, a.updates(from, id), "/search tangerine", "A14: a fork has the conversation")
	}
}
