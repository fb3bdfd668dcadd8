package discovery_test

import (
	"fmt"
	"os"
	"path"
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
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n| path | defined by | |\n|---|---|---|", k.title)
		last := ""
		for _, c := range discovery.Table() {
			if c.Kind != k.kind {
				continue
			}
			end := fmt.Sprintf(" | %s | %s |", c.Source, strings.Join(remarks(c), "; "))
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

// remarks says of a row what its path and its source do not.
func remarks(r discovery.Row) (all []string) {
	add := func(applies bool, remark string) {
		if applies {
			all = append(all, remark)
		}
	}
	is := func(word string) bool { return slices.Contains(r.Words, word) }
	add(is("below"), "also below")
	add(is("inside"), "in plugins")
	add(is("imports"), "imports")
	add(is("rule") && !is("mode"), "a rule")
	add(strings.HasPrefix(r.Pattern, ".openhands/"), "also with `triggers`")
	add(is("mode"), "for the mode in its path")
	add(r.Kind == discovery.Command && path.Ext(r.Pattern) == ".toml", "with `prompt` and `description`")
	if r.Kind == discovery.MCPServer {
		add(r.Words[1] != "mcpServers", "`"+r.Words[1]+"`")
		add(is("list"), "a list")
	}
	add(is("marketplace"), "lists plugins")
	add(is("one"), "one of these")
	return all
}
