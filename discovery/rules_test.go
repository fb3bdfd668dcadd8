package discovery_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// A glob without a slash means what the documentation of its tool says.
//
// Clause A25.
func TestGlobsWithoutASlash(t *testing.T) {
	rule := func(keys string) string { return "---\n" + keys + "\n---\nBe brief.\n" }
	top := tree(t, map[string]string{
		".claude/rules/a.md":                     rule("paths: ['*.md']"),
		".claude/rules/all.md":                   rule("paths: ['**/*.md']"),
		".clinerules/b.md":                       rule("paths: ['*.md']"),
		".github/instructions/c.instructions.md": rule("applyTo: '*.md'"),
		".github/instructions/d.instructions.md": rule("applyTo: '*'"),
		".continue/rules/e.md":                   rule("globs: '*.md'"),
		".cursor/rules/f.mdc":                    rule("globs: *.md"),
		".windsurf/rules/g.md":                   rule("trigger: glob\nglobs: '*.md'"),
		".kiro/steering/h.md":                    rule("inclusion: fileMatch\nfileMatchPattern: '*.md'"),
	})
	c := scan(t, discovery.Options{}, top)
	found := func(path string) []string {
		list, err := c.For(t.Context(), filepath.Join(top, path))
		require.NoError(t, err)
		return names(list)
	}
	anywhere := []string{".claude/rules/all.md", ".cursor/rules/f.mdc", ".windsurf/rules/g.md",
		".kiro/steering/h.md"}
	require.ElementsMatch(t, anywhere, found("docs/x.md"))
	require.ElementsMatch(t, append(anywhere, ".claude/rules/a.md", ".clinerules/b.md",
		".github/instructions/c.instructions.md", ".github/instructions/d.instructions.md",
		".continue/rules/e.md"), found("x.md"))
}

// Clause D5.
func TestContinueRules(t *testing.T) {
	top := tree(t, map[string]string{
		".continue/rules/always.md":  "---\nname: Always\n---\nTalk.",
		".continue/rules/true.md":    "---\nalwaysApply: true\nglobs: '**/*.go'\n---\nTalk.",
		".continue/rules/globs.md":   "---\nglobs: ['**/*.go']\n---\nTalk.",
		".continue/rules/agent.md":   "---\nalwaysApply: false\ndescription: For tests\n---\nTalk.",
		".continue/rules/asked.md":   "---\nalwaysApply: false\n---\n",
		".continue/rules/content.md": "---\nregex: '^import'\n---\nTalk.",
		".continue/rules/plain.md":   "Talk.",
	})
	modes := make(map[string]discovery.Mode)
	for _, a := range scan(t, discovery.Options{}, top).Active(discovery.Instruction) {
		modes[filepath.Base(a.Path)] = a.Applies.Mode
	}
	require.Equal(t, map[string]discovery.Mode{
		"always.md": discovery.Always, "true.md": discovery.Always, "globs.md": discovery.ByPath,
		"agent.md": discovery.ByDescription, "content.md": discovery.ByDescription,
		"plain.md": discovery.Always,
	}, modes)
}

// The keys of every tool count in the rules of every other, because people copy rules.
func TestKeysOfRules(t *testing.T) {
	for keys, want := range map[string]discovery.Mode{
		"":                               discovery.Always,
		"alwaysApply: true":              discovery.Always,
		"trigger: always_on":             discovery.Always,
		"inclusion: always":              discovery.Always,
		"type: always_apply":             discovery.Always,
		"paths: ['src/*.go']":            discovery.ByPath,
		"globs: src/*.go":                discovery.ByPath,
		"applyTo: src/*.go":              discovery.ByPath,
		"trigger: glob\nglobs: src/*.go": discovery.ByPath,
		"inclusion: fileMatch\nfileMatchPattern: src/*.go": discovery.ByPath,
		"trigger: model_decision\nglobs: src/*.go":         discovery.ByDescription,
		"inclusion: auto":                    discovery.ByDescription,
		"type: agent_requested":              discovery.ByDescription,
		"alwaysApply: false":                 discovery.ByDescription,
		"trigger: manual":                    discovery.OnRequest,
		"inclusion: manual\nglobs: src/*.go": discovery.OnRequest,
	} {
		files := make(map[string]string)
		for _, dir := range []string{".claude/rules", ".windsurf/rules", ".kiro/steering",
			".continue/rules", ".augment/rules", ".trae/rules", ".new/rules/deep"} {
			files[dir+"/r.md"] = "---\ndescription: For tests\n" + keys + "\n---\nTalk.\n"
		}
		found := scan(t, discovery.Options{}, tree(t, files)).Active(discovery.Instruction)
		require.Len(t, found, len(files))
		for _, a := range found {
			require.Equal(t, want, a.Applies.Mode, "%s %q", a.Path, keys)
		}
	}
}

// Clause D5.
func TestMicroagents(t *testing.T) {
	top := tree(t, map[string]string{
		".openhands/microagents/repo.md":   "---\nagent: CodeActAgent\n---\nRun make.",
		".openhands/microagents/plain.md":  "Run make.",
		".openhands/microagents/npm.md":    "---\ntriggers:\n- npm\n- yarn\n---\nUse pnpm.",
		".openhands/microagents/README.md": "About this folder.",
	})
	c := scan(t, discovery.Options{}, top)
	text := c.Instructions(nil).String()
	require.Contains(t, text, "Run make.")
	require.Contains(t, text, "- .openhands/microagents/npm.md: When the task mentions npm, yarn\n")
	require.NotContains(t, text, "Use pnpm.")
	require.NotContains(t, text, "About this folder.")
	require.Len(t, c.Active(discovery.Instruction), 3)
}

// Clause A25.
func TestServersOfPluginsAreNotUsed(t *testing.T) {
	servers := func(name string) string {
		return `{"mcpServers": {"` + name + `": {"command": "x", "env": {"TOKEN": "secret"}}}}`
	}
	top := tree(t, map[string]string{
		".claude-plugin/marketplace.json": `{"plugins": [{"name": "one", "source": "./one"},
			{"name": "two", "source": "./two"}, {"name": "top", "source": "./"},
			{"name": "three", "source": "./three", "mcpServers": {"inline": {"command": "y"}}}]}`,
		".mcp.json":                      servers("own"),
		"one/.mcp.json":                  servers("db"),
		"two/.claude-plugin/plugin.json": `{"name": "two", "mcpServers": "./conf/mcp.json"}`,
		"two/conf/mcp.json":              servers("web"),
		"three/skills/x/SKILL.md":        skill("x", "Does it."),
	})
	c := scan(t, discovery.Options{}, top, filepath.Join(top, "one"))
	require.Equal(t, []string{"own", "db"}, names(c.Active(discovery.MCPServer)),
		"a plugin that is a root of its own is like other roots")
	require.Len(t, c.Of(discovery.MCPServer), 2)
}
