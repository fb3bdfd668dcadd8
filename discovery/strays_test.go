package discovery_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause D5.
func TestStrays(t *testing.T) {
	strays := func(t *testing.T, roots ...string) (paths []string, cut int) {
		c := scan(t, discovery.Options{}, roots...)
		found, incomplete, err := c.Strays(t.Context())
		require.NoError(t, err)
		for _, s := range found {
			paths = append(paths, relative(s.Path, roots[s.Root.Index]))
		}
		return paths, len(incomplete)
	}
	t.Run("D5/files where no convention looks", func(t *testing.T) {
		top := tree(t, map[string]string{
			"packages/web/skills/deploy/SKILL.md":   skill("deploy", "Deploys."),
			".other/skills/hidden/skill.md":         skill("hidden", "Is hidden."),
			"docs/x/y/z.instructions.md":            "Be brief.",
			"skills/.curated/known/SKILL.md":        skill("known", "Is found."),
			"skills/.curated/known/sub/SKILL.md":    skill("sub", "Is a file of another skill."),
			"node_modules/a/SKILL.md":               skill("no", "Is not searched."),
			".git/x/SKILL.md":                       skill("no", "Is not searched."),
			"a/AGENTS.md":                           "Is looked for when a file in its folder is used.",
			".agents/skills/deep/a/b/c/d/README.md": "x",
		})
		found, cut := strays(t, top, filepath.Join(top, "packages"))
		require.ElementsMatch(t, []string{
			"packages/web/skills/deploy/SKILL.md", ".other/skills/hidden/skill.md", "docs/x/y/z.instructions.md",
			"web/skills/deploy/SKILL.md",
		}, found)
		require.Zero(t, cut)
	})
	t.Run("D5/a large root is searched in part and says so", func(t *testing.T) {
		files := map[string]string{"a/skills/deep/a/b/SKILL.md": skill("deep",
			"Is below a telling name.")}
		for i := range 700 {
			files[fmt.Sprintf("src/d%d/file", i)] = ""
		}
		found, cut := strays(t, tree(t, files))
		require.Equal(t, []string{"a/skills/deep/a/b/SKILL.md"}, found)
		require.Equal(t, 1, cut)
	})
}
