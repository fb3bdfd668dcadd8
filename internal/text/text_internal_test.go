package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeant(t *testing.T) {
	names := Same([]string{"doctor", "setup", "sessions", "keep-dirs", "keyEnv", "bash", "run", "claude",
		"log-file", "remove", "add"})
	names["Claude Code"], names["Neovim (CodeCompanion)"] = "claude", "codecompanion"
	for word, want := range map[string]string{
		"docter": "doctor", "setpu": "setup", "Session": "sessions", "keepdirs": "keep-dirs",
		"apiKeyEnv": "keyEnv", "claude-code": "claude", "neovim": "codecompanion", "rnu": "run", "ad": "add",
		"tcsh": "", "rau": "", "frobnicate": "", "nope": "", "": "", "x": "", "set": "setup",
		"log": "log-file", "file": "", "move": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		require.Equal(t, want, Meant(word, names), word)
	}
	require.True(t, Misspelled("--keepdirs", names))
	require.False(t, Misspelled("--run-all", names), "a part of it is one")
	require.False(t, Misspelled("--nope", names))
}
