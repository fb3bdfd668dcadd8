package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// An editor passes variables and arguments on as they are written.
func TestStateDirectoryInHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	wd, err := filepath.Abs(".")
	require.NoError(t, err)
	for written, want := range map[string]string{
		"~/x": filepath.Join(home, "x"), "~": home, "x": filepath.Join(wd, "x"), home: home,
	} {
		typed, variable := newSettings(streams{}), newSettings(streams{})
		cmd := &cobra.Command{}
		cmd.Flags().AddFlagSet(typed.flags)
		require.NoError(t, cmd.ParseFlags([]string{"--state-dir", written}))
		typed.mark(cmd)
		t.Setenv("ACP_AGENT_STATE_DIR", written)
		require.NoError(t, variable.load())
		for _, set := range []*settings{typed, variable} {
			dir, err := set.stateDirectory()
			require.NoError(t, err)
			require.Equal(t, want, dir)
		}
	}
}

// What is started is kept out of the state directory in use, and out of the default one, which
// other windows use.
//
// Clause X8.
func TestStateDirectoriesAreHidden(t *testing.T) {
	set := newSettings(streams{})
	usual, err := defaultStateDir()
	require.NoError(t, err)
	require.Equal(t, []string{usual}, set.completeSandbox(sandbox.Settings{}).Hidden)
	own := t.TempDir()
	require.NoError(t, set.flags.Set("state-dir", own))
	require.Equal(t, []string{own, usual}, set.completeSandbox(sandbox.Settings{}).Hidden)
}

// Without a directory for its state the program does not take the current one for it, whose files
// others may have written.
func TestNoStateDirectory(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "LocalAppData", "ACP_AGENT_STATE_DIR"} {
		t.Setenv(name, "")
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("registry.json", []byte(`{"version": "1.0.0", "agents": [
		{"id": "planted", "name": "Planted", "version": "1.0.0", "description": "d",
		"distribution": {"npx": {"package": "p@1.0.0"}}}]}`), 0o600))
	require.NoError(t, os.Mkdir("worktrees", 0o700))
	require.NoError(t, os.WriteFile("worktrees/planted.json", []byte("{}"), 0o600))
	require.NoError(t, os.WriteFile("config.json",
		[]byte(`{"permissions": {"allow": ["run go test"]}}`), 0o600))
	for line, want := range map[string]string{
		"setup --yes --agent planted":            "--state-dir",
		"run --agent planted hello":              "--state-dir",
		"run --store postgres://127.0.0.1:1/d -": "--state-dir",
		"doctor planted":                         "--state-dir",
		"agents":                                 "opencode",
		"sessions list":                          "--state-dir",
		"sessions repair":                        "--state-dir",
		"sessions copy --to copies":              "--state-dir",
		"sessions transfer last --to planted":    "--state-dir",
		"tokens list":                            "--state-dir",
		"permissions list":                       "--state-dir",
		"permissions check ls":                   "--state-dir",
		"worktree list":                          "--state-dir",
		"discover":                               "--state-dir",
		"inspect":                                "--state-dir",
		"mcp":                                    "--state-dir",
		"serve":                                  "--state-dir",
		"diff planted --store postgres://127.0.0.1:1/d":                     "--state-dir",
		"sessions list --store postgres://127.0.0.1:1/d":                    "cannot connect",
		"sessions transfer x --to planted --store postgres://127.0.0.1:1/d": "--state-dir",
		"version":                   "acp-agent ",
		"sandbox --ports x -- true": "is not a port",
		"models":                    "No models are configured",
		"help run":                  "run starts",
		"completion bash":           "bash completion",
	} {
		var out bytes.Buffer
		root := newCommands(streams{in: strings.NewReader(""), out: &out, err: &out})
		root.SetArgs(append(strings.Fields(line), "--config=config.json"))
		if err := root.ExecuteContext(t.Context()); err != nil {
			fmt.Fprintln(&out, err)
		}
		assert.Contains(t, out.String(), want, line)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, 3)
}

// The file tools that an agent gets keep away from the state directory in use, too.
func TestToolsKnowTheStateDirectory(t *testing.T) {
	set, own := newSettings(streams{}), t.TempDir()
	require.NoError(t, set.flags.Set("state-dir", own))
	d, err := set.downstream(set.choice([]string{"agent"}))
	require.NoError(t, err)
	require.Contains(t, strings.Join(d.agent.RootsTools.Args, " "), "--state-dir "+own)
}
