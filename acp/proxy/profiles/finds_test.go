package profiles_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// Agents are not told what they find in their own directories.
func TestFindsOfKnownAgents(t *testing.T) {
	const skill = "---\nname: one\ndescription: d\n---\ntext\n"
	all := map[string]string{
		"AGENTS.md": "a\n", ".cline/rules/a.md": "a\n", ".cline/rules/deep/a.md": "a\n",
		".cline/skills/one/SKILL.md": skill, ".cline/workflows/w.md": "a\n",
		".clinerules/a.txt": "a\n", ".clinerules/skills/one/SKILL.md": skill,
		".clinerules/workflows/w.md": "a\n", ".agents/skills/one/SKILL.md": skill,
		".qwen/skills/one/SKILL.md": skill, ".qwen/commands/c.md": "a\n", "QWEN.md": "a\n",
		".goose/skills/one/SKILL.md": skill, ".pi/skills/one/SKILL.md": skill,
		"CLAUDE.local.md": "a\n", ".roo/rules/a.md": "a\n",
	}
	dir := dirtest.New(t)
	for name, content := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	ws := roottest.Open(t, dir)
	catalog, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)

	for agent, want := range map[string][]string{
		"cline": {".agents/skills/one/SKILL.md", ".cline/rules/a.md", ".cline/skills/one/SKILL.md",
			".cline/workflows/w.md", ".clinerules/a.txt", ".clinerules/skills/one/SKILL.md",
			".clinerules/workflows/w.md", "AGENTS.md"},
		"qwen": {".agents/skills/one/SKILL.md", ".qwen/commands/c.md", ".qwen/skills/one/SKILL.md",
			"AGENTS.md", "QWEN.md"},
		"goose":  {".agents/skills/one/SKILL.md", ".goose/skills/one/SKILL.md", "AGENTS.md"},
		"claude": {"CLAUDE.local.md"},
		"pi":     {"AGENTS.md"},
	} {
		known := profiles.Known()
		i := slices.IndexFunc(known, func(p profiles.Profile) bool { return p.Name == agent })
		finds := known[i].Finds.Matcher(catalog, profiles.RootsByContext)
		var got []string
		for _, kind := range []discovery.Kind{discovery.Instruction, discovery.Skill, discovery.Command} {
			for _, a := range catalog.Of(kind) {
				if finds(a) {
					rel, err := filepath.Rel(dir, a.Path)
					require.NoError(t, err)
					got = append(got, filepath.ToSlash(rel))
				}
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got, agent)
	}
}
