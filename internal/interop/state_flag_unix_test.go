//go:build unix

package interop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/program"
)

func TestS5_TheFlagMovesAllThatIsKept(t *testing.T) {
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
