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

func TestPatterns(t *testing.T) {
	for _, pattern := range []string{"", "/x", "a//b", "../x", "**/x.md", "a/**", "a/[", `a\b`, "c:x"} {
		require.Error(t, discovery.CheckPattern(pattern), pattern)
	}
	for _, r := range discovery.Table() {
		require.NotEmpty(t, r.Kind, r.Pattern)
		require.NotEmpty(t, r.Source, r.Pattern)
		require.Equal(t, r.Kind == discovery.MCPServer, r.Member != "", r.Pattern)
	}
}

// Clause A25.
func TestOtherDirectoriesAreNotScanned(t *testing.T) {
	files := map[string]string{".agents/skills/one/SKILL.md": skill("one", "One.")}
	for i := range 100 {
		files[fmt.Sprintf("src/pkg%d/deep/file.go", i)] = "package x"
		files[fmt.Sprintf("node_modules/pkg%d/SKILL.md", i)] = skill("no", "No.")
	}
	c := scan(t, discovery.Options{"MaxDirs": 2}, tree(t, files))
	require.Empty(t, c.LimitsReached(), "the skill's directory and src are all that it looks into")
	require.Equal(t, []string{"one"}, names(c.Of(discovery.Skill)))
}

// The same globs in every way that people write them.
//
// Clause A25.
func TestGlobsAsTheyAreWritten(t *testing.T) {
	globs := []string{"src/**/*.js", "src/**/*.{ts,tsx}"}
	ways := map[string]string{
		"plain":               `KEY: src/**/*.js, src/**/*.{ts,tsx}`,
		"quoted":              `KEY: "src/**/*.js, src/**/*.{ts,tsx}"`,
		"quoted each":         `KEY: "src/**/*.js", "src/**/*.{ts,tsx}"`,
		"single quotes":       `KEY: 'src/**/*.js', 'src/**/*.{ts,tsx}'`,
		"both quotes":         `KEY: 'src/**/*.js', "src/**/*.{ts,tsx}"`,
		"comment":             `KEY: src/**/*.js, src/**/*.{ts,tsx} # both`,
		"quoted and comment":  `KEY: "src/**/*.js", "src/**/*.{ts,tsx}" # "both", too`,
		"flow list":           `KEY: ["src/**/*.js", "src/**/*.{ts,tsx}"] # both`,
		"plain flow list":     `KEY: [src/**/*.js, "src/**/*.{ts,tsx}"]`,
		"long flow list":      "KEY: [\n  \"src/**/*.js\",\n  'src/**/*.{ts,tsx}',\n]",
		"list":                "KEY:\n  - src/**/*.js # one\n  - \"src/**/*.{ts,tsx}\" # two",
		"list without indent": "KEY:\n- 'src/**/*.js'\n- 'src/**/*.{ts,tsx}'",
		"commas in a list":    "KEY:\n  - src/**/*.js,src/**/*.{ts,tsx}",
		"commas in brackets":  `KEY: ["src/**/*.js, src/**/*.{ts,tsx}"]`,
		"folded":              "KEY: >-\n  src/**/*.js,\n  src/**/*.{ts,tsx}",
		"no space":            `KEY: src/**/*.js,src/**/*.{ts,tsx}`,
		"another fault":       "description: a: b\nKEY: \"src/**/*.js\", \"src/**/*.{ts,tsx}\"",
	}
	for name, f := range map[string]struct{ path, keys, glob string }{
		"Claude":   {".claude/rules/a.md", "", "paths"},
		"Copilot":  {".github/instructions/a.instructions.md", "", "applyTo"},
		"Cursor":   {".cursor/rules/a.mdc", "alwaysApply: false # c\n", "globs"},
		"Windsurf": {".windsurf/rules/a.md", "trigger: glob # c\n", "globs"},
		"Continue": {".continue/rules/a.md", "", "globs"},
		"Kiro":     {".kiro/steering/a.md", "inclusion: fileMatch\n", "fileMatchPattern"},
	} {
		for way, text := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				keys := f.keys + strings.Replace(text, "KEY", f.glob, 1)
				top := tree(t, map[string]string{f.path: "---\n" + keys + "\n---\nBe brief.\n"})
				c := scan(t, discovery.Options{}, top)
				rule := c.Of(discovery.Instruction)[0]
				require.Equal(t, discovery.ByPath, rule.Applies.Mode, keys)
				require.Equal(t, globs, rule.Applies.Globs, keys)
				list, err := c.For(t.Context(), filepath.Join(top, "src/x/y.tsx"))
				require.NoError(t, err)
				require.Len(t, list, 1)
			})
		}
	}
}

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
