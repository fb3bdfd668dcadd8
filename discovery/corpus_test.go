package discovery_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// corpus is the folder of real files that ACP_AGENT_CORPUS names: awesome-copilot at ab7544d and
// awesome-cursorrules at b044f95.
func corpus(t *testing.T, part string) string {
	t.Helper()
	top := os.Getenv("ACP_AGENT_CORPUS")
	if top == "" {
		t.Skip("set ACP_AGENT_CORPUS to the folder with awesome-copilot and awesome-cursorrules")
	}
	return filepath.Join(top, part)
}

// copied scans a root in which a copy of a folder has another path.
func copied(t *testing.T, folder, path string) *discovery.Catalog {
	t.Helper()
	top := tree(t, nil)
	require.NoError(t, os.CopyFS(filepath.Join(top, filepath.FromSlash(path)), os.DirFS(folder)))
	return scan(t, discovery.Options{}, top)
}

// counts are how many artifacts of a kind have each state and mode, and how many rules they break.
func counts(c *discovery.Catalog, kind discovery.Kind) map[string]int {
	n := make(map[string]int)
	for _, a := range c.Of(kind) {
		n[string(a.State)]++
		if a.Applies.Mode != "" {
			n["applies/"+string(a.Applies.Mode)]++
		}
		for range a.Diagnostics {
			n["diagnostics"]++
		}
	}
	return n
}

// Every skill of the corpus loads. Seventeen are inside of other skills. A root that is a folder of
// skills needs no row of its own.
//
// Clause A25.
func TestCorpusSkills(t *testing.T) {
	skills := corpus(t, "awesome-copilot/skills")
	for want, c := range map[int]*discovery.Catalog{
		417: copied(t, skills, ".claude/skills"), 402: scan(t, discovery.Options{}, skills)} {
		require.Empty(t, c.LimitsReached())
		require.Equal(t, map[string]int{"active": want}, counts(c, discovery.Skill))
	}
}

// Clause A25.
func TestCorpusInstructions(t *testing.T) {
	c := copied(t, corpus(t, "awesome-copilot/instructions"), ".github/instructions")
	require.Empty(t, c.LimitsReached())
	require.Equal(t, map[string]int{
		"active": 191, "applies/always": 38, "applies/paths": 146, "applies/description": 2,
		"applies/request": 5,
	}, counts(c, discovery.Instruction))
}

// Most rules are not YAML and load all the same. One has nothing but its frontmatter.
//
// Clause A25.
func TestCorpusCursorRules(t *testing.T) {
	c := copied(t, corpus(t, "awesome-cursorrules/rules"), ".cursor/rules")
	require.Empty(t, c.LimitsReached())
	require.Equal(t, map[string]int{
		"active": 256, "invalid": 1, "applies/always": 1, "applies/paths": 256,
	}, counts(c, discovery.Instruction))
}

// Every SKILL.md of a repository of skills is found when the repository is a root.
// ACP_AGENT_SKILL_REPOSITORIES names a folder with checkouts, such as those of anthropics/skills,
// openai/skills, vercel-labs/agent-skills, obra/superpowers and wshobson/agents.
//
// Clause D5.
func TestSkillRepositories(t *testing.T) {
	top := os.Getenv("ACP_AGENT_SKILL_REPOSITORIES")
	if top == "" {
		t.Skip("set ACP_AGENT_SKILL_REPOSITORIES to a folder with checkouts of repositories of skills")
	}
	top, err := filepath.EvalSymlinks(top)
	require.NoError(t, err)
	repositories, err := os.ReadDir(top)
	require.NoError(t, err)
	for _, entry := range repositories {
		t.Run("D5/"+entry.Name(), func(t *testing.T) {
			root := filepath.Join(top, entry.Name())
			var want, got []string
			require.NoError(t, filepath.WalkDir(root,
				func(path string, d os.DirEntry, err error) error {
					if err == nil && d.Name() == "SKILL.md" {
						want = append(want, path)
					}
					return err
				}))
			c := scan(t, discovery.Options{}, root)
			for _, a := range c.Active(discovery.Skill) {
				got = append(got, a.Path)
			}
			require.NotEmpty(t, want)
			require.ElementsMatch(t, want, got)
			require.Empty(t, c.LimitsReached())
		})
	}
}
