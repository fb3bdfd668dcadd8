package discovery

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		kind  Kind
		title string
	}{
		{Instruction, "Instructions"},
		{Skill, "Skills"},
		{Command, "Commands"},
		{MCPServer, "MCP servers"},
		{Plugin, "Plugins"},
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n| path | defined by | |\n|---|---|---|", k.title)
		last := ""
		for _, c := range rows() {
			if c.kind != k.kind {
				continue
			}
			end := fmt.Sprintf(" | %s | %s |", c.source, strings.Join(remarks(c), "; "))
			if end == last {
				fmt.Fprintf(&b, ", `%s`", c.pattern)
				continue
			}
			fmt.Fprintf(&b, "%s\n| `%s`", last, c.pattern)
			last = end
		}
		b.WriteString(last + "\n")
	}
	b.WriteString("\n")
	return b.String()
}

// remarks says of a row what its path and its source do not.
func remarks(r row) (all []string) {
	add := func(applies bool, remark string) {
		if applies {
			all = append(all, remark)
		}
	}
	add(r.below, "also below")
	add(r.inside, "in plugins")
	add(r.imports, "imports")
	add(r.kind == Instruction && !r.text && !r.mode, "a rule")
	add(strings.HasPrefix(r.pattern, ".openhands/"), "also with `triggers`")
	add(r.mode, "for the mode in its path")
	add(r.kind == Command && path.Ext(r.pattern) == ".toml", "with `prompt` and `description`")
	add(r.kind == MCPServer && r.member != "mcpServers", "`"+r.member+"`")
	add(r.list, "a list")
	add(r.kind == Plugin && !r.plugin, "lists plugins")
	add(r.one, "one of these")
	return all
}
