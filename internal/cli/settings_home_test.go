package cli

import (
	"path/filepath"
	"testing"

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
		set := newSettings()
		require.NoError(t, set.flags.Set("state-dir", written))
		dir, err := set.stateDirectory()
		require.NoError(t, err)
		require.Equal(t, want, dir)
	}
}

// What is started is kept out of the state directory in use, and out of the default one, which other
// windows use.
//
// Clause X8.
func TestStateDirectoriesAreHidden(t *testing.T) {
	set := newSettings()
	usual, err := defaultStateDir()
	require.NoError(t, err)
	require.Equal(t, []string{usual}, set.complete(sandbox.Settings{}).Hidden)
	own := t.TempDir()
	require.NoError(t, set.flags.Set("state-dir", own))
	require.Equal(t, []string{own, usual}, set.complete(sandbox.Settings{}).Hidden)
}
