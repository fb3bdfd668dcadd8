package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

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
