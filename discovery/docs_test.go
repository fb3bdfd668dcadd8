package discovery_test

import (
	"fmt"
	"os"
	"slices"
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

// conventionTables returns a table in Markdown for each kind of artifact. Neighbours that differ
// only in their path share a row.
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
		discovery.EveryDirectory: "also below",
		discovery.EachPlugin:     "in plugins",
	}
	notes := map[discovery.Format]string{
		discovery.TextWithImports:   "imports",
		discovery.CopilotRule:       "a rule",
		discovery.AnchoredRule:      "a rule",
		discovery.Rule:              "a rule",
		discovery.CursorRule:        "a rule",
		discovery.Microagent:        "a rule, also with `triggers`",
		discovery.RooModeRule:       "for the mode in its path",
		discovery.GeminiCommand:     "with `prompt` and `description`",
		discovery.VSCodeServers:     "`servers`",
		discovery.GeminiSettings:    "not those in `mcp.excluded`",
		discovery.OpencodeSettings:  "`mcp`",
		discovery.CodexSettings:     "`mcp_servers.NAME`",
		discovery.PluginMarketplace: "lists plugins",
		discovery.CrushSettings:     "`mcp`",
		discovery.AmpSettings:       "`amp.mcpServers`",
		discovery.ZedSettings:       "`context_servers`",
		discovery.VibeSettings:      "array `mcp_servers`",
		discovery.ContinueServers:   "a list",
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n| path | defined by | |\n|---|---|---|", k.title)
		last := ""
		for _, c := range discovery.Conventions() {
			if discovery.KindOf(c.Format) != k.kind {
				continue
			}
			remarks := []string{levels[c.Level], notes[c.Format]}
			if c.Level == discovery.EachPlugin && k.kind == discovery.MCPServer {
				remarks = append(remarks, "not used")
			}
			if c.OnePerDirectory {
				remarks = append(remarks, "one of these")
			}
			remarks = slices.DeleteFunc(remarks, func(r string) bool { return r == "" })
			end := fmt.Sprintf(" | %s | %s |", c.Source, strings.Join(remarks, "; "))
			if end == last {
				fmt.Fprintf(&b, ", `%s`", c.Pattern)
				continue
			}
			fmt.Fprintf(&b, "%s\n| `%s`", last, c.Pattern)
			last = end
		}
		b.WriteString(last + "\n")
	}
	b.WriteString("\n")
	return b.String()
}
