package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// source is a line of testdata/sources.txt.
type source struct {
	kind, path, page string
}

// rows returns the rows of the table that find the path.
func (s source) rows() (rows []discovery.Row) {
	path, inPlugin := strings.CutPrefix(s.path, "PLUGIN/")
	for _, c := range discovery.Table() {
		found, err := doublestar.Match(c.Pattern, path)
		if err == nil && found && inPlugin == c.Inside &&
			string(c.Kind) == s.kind {
			rows = append(rows, c)
		}
	}
	return rows
}

func readSources(t *testing.T) (all []source) {
	t.Helper()
	content, err := os.ReadFile("testdata/sources.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) > 3 {
			require.Contains(t, []string{"installer", "unconfirmed"}, fields[3], line)
			fields = fields[:3]
		}
		require.Len(t, fields, 3, line)
		require.NotEmpty(t, fields[2], line)
		all = append(all, source{fields[0], fields[1], fields[2]})
	}
	return all
}

// usual returns the content of a file of the row, whose name has this extension.
func usual(r discovery.Row, extension string) string {
	const server = `"one": {"command": "serve", "args": ["x"]}`
	switch r.Kind {
	case discovery.Skill:
		return skill("one", "One.")
	case discovery.Plugin:
		if r.Plugin {
			return `{"name": "one", "skills": "../outside"}`
		}
		return `{"plugins": [{"name": "far", "source": "./nowhere"}]}`
	case discovery.Command:
		if extension == ".toml" {
			return "prompt = \"Go.\"\n"
		}
	case discovery.MCPServer:
		switch {
		case extension == ".yaml":
			return "name: Servers\nmcpServers:\n  - name: one\n    command: serve\n    args:\n      - x\n"
		case extension == ".toml" && r.List:
			return "[[mcp_servers]]\nname = \"one\"\ntransport = \"stdio\"\ncommand = \"serve\"\nargs = [\"x\"]\n"
		case extension == ".toml":
			return "[mcp_servers.one]\ncommand = \"serve\"\nargs = [\"x\"]\n"
		case r.Opencode:
			return `{"mcp": {"one": {"type": "local", "command": ["serve", "x"]}}}`
		default:
			return `{"` + r.Member + `": {` + server + `}}`
		}
	}
	return "Do it.\n"
}

// What is found is compared with what agents document: every path of the list is found, and every
// row of the table is in the list.
//
// Clause D5.
func TestSources(t *testing.T) {
	sourced := make(map[string]bool)
	for _, s := range readSources(t) {
		rows := s.rows()
		require.NotEmpty(t, rows, "no row finds the %s %s", s.kind, s.path)
		for _, r := range rows {
			sourced[fmt.Sprint(r)] = true
		}
		files := map[string]string{".claude-plugin/plugin.json": `{"name": "p"}`}
		path, inPlugin := strings.CutPrefix(s.path, "PLUGIN/")
		if !inPlugin {
			clear(files)
		}
		files[path] = usual(rows[0], filepath.Ext(path))
		top := tree(t, files)
		all := scan(t, discovery.Options{}, top).Artifacts()
		found := slices.IndexFunc(all, func(a discovery.Artifact) bool {
			return string(a.Kind) == s.kind &&
				a.Path == filepath.Join(top, filepath.FromSlash(path))
		})
		require.GreaterOrEqual(t, found, 0, "the %s %s is not found: %v", s.kind, s.path, all)
		require.NotEqual(t, discovery.Invalid, all[found].State, "%v", all[found])
		if s.kind == string(discovery.MCPServer) {
			require.Equal(t, "one", strings.TrimPrefix(all[found].Name, "p:"), "%v", all[found])
		}
	}
	for _, row := range discovery.Table() {
		require.True(t, sourced[fmt.Sprint(row)], "testdata/sources.txt does not say who reads %s (%s)",
			row.Pattern, row.Source)
	}
}
