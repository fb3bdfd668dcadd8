package discovery_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// The tables in docs/discovery.md are those of the program. ACP_AGENT_UPDATE=1 rewrites them.
//
// Clause D5.
func TestDocs(t *testing.T) {
	const (
		page  = "../docs/discovery.md"
		begin = "<!-- The tables are made by TestDocs in the package discovery. -->\n"
		end   = "<!-- End of the tables. -->\n"
	)
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(content), begin)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := head + begin + conventionTables() + end + tail
	if os.Getenv("ACP_AGENT_UPDATE") != "" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content))
}

// conventionTables returns a table in Markdown for each kind of artifact.
func conventionTables() string {
	kinds := []struct {
		kind  discovery.Kind
		title string
	}{
		{discovery.Instruction, "Instructions"},
		{discovery.Skill, "Skills"},
		{discovery.Command, "Commands"},
		{discovery.MCPServer, "MCP servers"},
		{discovery.Plugin, "Plugins"},
	}
	levels := map[discovery.Level]string{
		discovery.RootOnly:       "each folder",
		discovery.EveryDirectory: "each folder, and each directory below it",
		discovery.EachPlugin:     "each plugin",
	}
	notes := map[discovery.Format]string{
		discovery.TextWithImports:   "`@path` imports a file",
		discovery.CopilotRule:       "a rule, with `applyTo`",
		discovery.AnchoredRule:      "a rule",
		discovery.Rule:              "a rule",
		discovery.CursorRule:        "a rule, with `globs`, `alwaysApply` or `description`",
		discovery.Microagent:        "a rule, also with `triggers`",
		discovery.RooModeRule:       "for the mode in its path",
		discovery.CommandFile:       "`git/commit.md` is `/git:commit`",
		discovery.GeminiCommand:     "TOML with `prompt` and `description`",
		discovery.MCPServers:        "member `mcpServers`",
		discovery.VSCodeServers:     "member `servers`",
		discovery.GeminiSettings:    "member `mcpServers`, except those in `mcp.excluded`",
		discovery.OpencodeSettings:  "member `mcp`",
		discovery.CodexSettings:     "tables `mcp_servers.NAME`",
		discovery.PluginMarketplace: "lists plugins and where they are",
		discovery.PluginManifest:    "the folder is a plugin",
		discovery.CrushSettings:     "member `mcp`",
		discovery.AmpSettings:       "member `amp.mcpServers`",
		discovery.ZedSettings:       "member `context_servers`",
		discovery.VibeSettings:      "array `mcp_servers`",
		discovery.ContinueServers:   "YAML, list `mcpServers`",
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n| path | in | defined by | |\n|---|---|---|---|\n", k.title)
		for _, c := range discovery.Conventions() {
			if discovery.KindOf(c.Format) != k.kind {
				continue
			}
			note := notes[c.Format]
			if c.Level == discovery.EachPlugin && k.kind == discovery.MCPServer {
				note = "not used"
			}
			if c.OnePerDirectory {
				note = strings.TrimSuffix("one of these; "+note, "; ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Pattern, levels[c.Level], c.Source, note)
		}
	}
	b.WriteString("\n")
	return b.String()
}
