//go:build unix

package explore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestUnreadableDirectory(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	cwd := plant(t, fileTree{"a.txt": "needle\n", "closed/b.txt": "needle\n"})
	require.NoError(t, os.Chmod(filepath.Join(cwd, "closed"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(cwd, "closed"), 0o700) })
	a := open(t, limits{}, cwd).ask("needle")
	require.Len(t, a.lines(), 1)
	require.Contains(t, a.text(), "1 entry that could not be read")
}
