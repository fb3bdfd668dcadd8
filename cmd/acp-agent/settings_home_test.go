package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
