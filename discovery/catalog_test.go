package discovery_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause A25.
func TestSlashCommands(t *testing.T) {
	top := tree(t, map[string]string{
		"a/.claude/commands/fix it.md":    "---\ndescription: Fix\nargument-hint: <number>\n---\nFix.",
		"a/.claude/commands/help.md":      "Help.",
		"b/.agents/skills/one/SKILL.md":   skill("one", "One."),
		"b/.agents/skills/two/SKILL.md":   "---\nname: two\ndescription: Two.\nuser-invocable: False\n---\n",
		"b/.agents/skills/three/SKILL.md": "---\nname: three\ndescription: Three.\ndisable-model-invocation: TRUE\n---\n",
		"b/.claude/commands/one.md":       "Shadowed by the skill.",
		"b/.claude/commands/fix-it.md":    "Typed like the one of a.",
	})
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	offered, taken := c.SlashCommands("help")
	require.Equal(t, []string{"fix-it", "one", "three"}, typed(offered))
	require.True(t, offered[2].Artifact.UserOnly)
	require.Equal(t, "Fix", offered[0].Description)
	require.Equal(t, "<number>", offered[0].Hint)
	require.Equal(t, []string{"help", "fix-it"}, typed(taken))
	require.Equal(t, 1, taken[1].Artifact.Root.Index)
}

func typed(list []discovery.SlashCommand) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// Clause A25.
func TestSampleWorkspaceInEveryOrder(t *testing.T) {
	top, err := filepath.Abs("../testdata/workspace")
	require.NoError(t, err)
	for _, order := range [][]string{
		{"app", "shared", "skills"}, {"app", "skills", "shared"}, {"shared", "app", "skills"},
		{"shared", "skills", "app"}, {"skills", "app", "shared"}, {"skills", "shared", "app"},
	} {
		var roots []string
		for _, name := range order {
			roots = append(roots, filepath.Join(top, name))
		}
		c := scan(t, discovery.Options{}, roots...)
		require.Len(t, c.Artifacts(), 9)
		require.Len(t, c.Active(discovery.Instruction), 3)
		require.ElementsMatch(t, []string{"add-endpoint", "flaky-tests", "release"},
			names(c.Active(discovery.Skill)))
		first := min(slices.Index(order, "app"), slices.Index(order, "skills"))
		release := c.Named(discovery.Skill, "release")
		require.Equal(t, first, release[0].Root.Index)
		require.Equal(t, release[0].Path, release[1].ShadowedBy)
	}
}

// Clause A25.
func TestOnlySkillsAndCommandsAreExpanded(t *testing.T) {
	top := tree(t, map[string]string{
		".agents/skills/one/SKILL.md": skill("one", "One."),
		".mcp.json":                   `{"mcpServers": {"x": {"command": "x", "env": {"KEY": "s3cret"}}}}`,
	})
	c := scan(t, discovery.Options{}, top)
	text := func(k discovery.Kind) (string, error) {
		e, err := c.Expand(t.Context(), c.Of(k)[0], "")
		return e.String(), err
	}
	got, err := text(discovery.Skill)
	require.NoError(t, err)
	require.Equal(t, "\nDo it.\n", got)
	_, err = text(discovery.MCPServer)
	require.ErrorContains(t, err, "neither a skill nor a command")
	require.NoError(t, os.RemoveAll(filepath.Join(top, ".agents")))
	_, err = text(discovery.Skill)
	require.ErrorIs(t, err, os.ErrNotExist)
}
