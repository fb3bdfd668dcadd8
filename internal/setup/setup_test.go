package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

func TestAnswersAreNumbersOrNames(t *testing.T) {
	options := []option{
		{"zed", "Zed"}, {"vscode", "VS Code (ACP Client)"}, {"codecompanion", "Neovim (CodeCompanion)"},
		{"avante", "Neovim (avante)"}, {"pi", "pi (/usr/bin/pi)"}, {"pilot", "pilot"},
	}
	for line, want := range map[string][]int{
		"": nil, "1": {1}, "6": {6}, "0": nil, "7": nil, "-1": nil, "ZED": {1}, "z": {1}, "vs c": {2}, "acp": {2},
		"CodeC": {3}, "neovim": {3, 4}, "Neovim (a": {4}, "pi": {5}, "pil": {6}, "p": {5, 6}, "emacs": nil,
	} {
		require.Equal(t, want, find(options, line), line)
	}
}

// A relative folder starts in the working directory, as in a session.
func TestFoldersStartInTheWorkingDirectory(t *testing.T) {
	top := dirtest.New(t, "app/in/x", "", "in/x", "", "here/x", "")
	t.Chdir(top)
	app := filepath.Join(top, "app")
	separator := string(filepath.Separator)
	for path, want := range map[string]string{
		"in": app + separator + "in", "../here": app + separator + "../here", "here": "here",
		"nowhere": app + separator + "nowhere", top: top,
	} {
		require.Equal(t, want, fromCwd(app, path))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(top, "here")))
	require.Equal(t, app+separator+"here", fromCwd(app, "here"), "what is missing is named as in a session")
}
