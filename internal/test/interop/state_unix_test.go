//go:build unix

package interop

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// modes checks the file modes in the state directory.
func modes(t *testing.T, state string) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o700)
		if !d.IsDir() {
			want, files = 0o600, files+1
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
	require.NotZero(t, files)
}

// Files are private whatever the umask is.
//
// Clause S5.
func TestFileModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, log, trace := filepath.Join(dir, "state"), filepath.Join(dir, "log"), filepath.Join(dir, "trace")
	a := startCommand(t, "/bin/sh", "-c", `umask 0; exec "$0" "$@"`, program.Path(),
		"--state-dir", state, "--log-file", log, "--log-level", "debug", "--trace", trace).initialize()
	session := a.open(folder(t, "a.txt", "a"))
	a.prompt(session, "/search a")
	modes(t, state)
	a.leave()
	modes(t, state)
	for _, path := range []string{log, trace} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
	}
}

// Clause S5.
func TestStateDirFlag(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string][]string{"our own": nil, "another behind": behind()} {
		t.Run(name, func(t *testing.T) {
			home, state := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
			command := []string{"/usr/bin/env", "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"),
				"XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
				program.Path(), "--state-dir", state}
			a := startCommand(t, append(command, agent...)...).initialize()
			a.prompt(a.open(folder(t)), "hello")
			a.leave()
			modes(t, state)
			left, err := os.ReadDir(home)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
