package setup

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page shows what setup prints, and names the file and the plugins' names for agents.
func TestSnippetsOfEditorsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/editors.md")
	require.NoError(t, err)
	sections := make(map[string]string)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	for _, e := range editors() {
		t.Run(e.name, func(t *testing.T) {
			if e.name == "other" {
				return
			}
			section := sections[e.Title]
			require.NotEmpty(t, section)
			agent := "opencode"
			if e.name == "jetbrains" {
				agent = "/usr/local/bin/opencode"
			}
			args := []string{"--keep-dirs", "--", agent, "acp"}
			if e.SendsFolders {
				args = args[1:]
			}
			name := "opencode"
			if e.Names != nil {
				name = e.Names[defaultName]
				require.NotEmpty(t, name)
			}
			require.Contains(t, section, "\n"+e.render(name, "/usr/local/bin/acp-agent", args)+"```\n")
			for _, name := range e.Names {
				require.Contains(t, section, name)
			}
			for _, system := range []string{"linux", "darwin", "windows"} {
				if file := e.path(system); strings.HasSuffix(file, ".json") {
					require.Contains(t, section, "`"+file+"`")
				}
			}
		})
	}
}
