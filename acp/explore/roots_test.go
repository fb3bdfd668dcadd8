package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoots(t *testing.T) {
	top := plant(t, fileTree{"one/app/a": "", "two/app/b": "", "lib/c": ""})
	symlink(t, filepath.Join(top, "lib"), top, "spelled")
	one, two, spelled := filepath.Join(top, "one", "app"), filepath.Join(top, "two", "app"), filepath.Join(top, "spelled")
	c := open(t, limits{}, one, two, spelled)
	c.client.tools = served{status: servers()}

	text := c.ask("/roots").text()
	for _, want := range []string{
		"Root 0: **`one/app`**, the working directory", "Root 1: **`two/app`**\n", "Root 2: **`spelled`**\n",
		"- path: `" + spelled + "`\n", "- real path: `" + filepath.Join(top, "lib") + "`\n",
		"- URI: `" + dir(t, filepath.Join(top, "lib")).URI() + "`\n", "- state: ok\n",
		"- `files` (stdio): idle\n", "- `docs` (http): ready\n",
	} {
		require.Contains(t, text, want)
	}
	require.Less(t, strings.Index(text, "Root 0"), strings.Index(text, "Root 1"))

	require.NoError(t, os.Rename(two, filepath.Join(top, "moved")))
	require.Contains(t, c.ask("/roots").text(), "- state: moved")
}
