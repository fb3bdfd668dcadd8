package acp_test

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

func TestLargeRootsAreToldOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME does not set the home directory on Windows")
	}
	home, project := folder(t), folder(t)
	above := filepath.Dir(home)
	t.Setenv("HOME", home)
	warned := func(said []string) (folders []string) {
		for _, text := range said {
			for line := range strings.Lines(text) {
				if rest, ok := strings.CutPrefix(line, "The folder `"); ok &&
					strings.Contains(line, "reaches everything in it") {
					folder, _, _ := strings.Cut(rest, "`")
					folders = append(folders, folder)
				}
			}
		}
		return folders
	}
	store := memstore.New(t)
	c := connect(t, acp.Options{Store: store})
	c.initialize()

	id := c.open(project)
	require.Empty(t, warned(c.texts(id, "say one")))

	id = c.open(home, project)
	require.Empty(t, texts(c.messages(), id), "not before the first prompt")
	require.Equal(t, []string{home}, warned(c.texts(id, "say one")))
	require.Empty(t, warned(c.texts(id, "say two")))
	c.call("session/load", rootsParams(id, home, project, above))
	require.Equal(t, []string{above}, warned(c.texts(id, "say three")),
		"it is not recorded, and only the new root is told")

	unprompted := c.open(home)
	c.call("session/resume", rootsParams(unprompted, home))
	c.leave()
	c = connect(t, acp.Options{Store: store})
	c.initialize()
	c.call("session/resume", rootsParams(unprompted, home))
	c.call("session/resume", rootsParams(unprompted, home))
	require.Equal(t, []string{home}, warned(c.texts(unprompted, "say one")))
	c.call("session/resume", rootsParams(id, home, project, above))
	require.Empty(t, warned(c.texts(id, "say four")))
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(id, home)), &fork))
	require.Equal(t, []string{home}, warned(c.texts(fork.SessionID, "say five")),
		"a fork is another session")
}
