package discovery_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause D1.
func TestSkillListHasRelativePaths(t *testing.T) {
	top := tree(t, map[string]string{
		"a/.agents/skills/one/SKILL.md":    skill("one", "Does one thing."),
		"a/.agents/skills/two/SKILL.md":    skill("two", "Does another."),
		"a/.claude/skills/folder/SKILL.md": skill("three", "Has another name."),
		"b/four/SKILL.md":                  skill("four", "Is at the top."),
	})
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	c := scan(t, discovery.Options{}, a, b)
	list, left := discovery.ListSkills(c.Active(discovery.Skill), 16<<10)
	require.Zero(t, left)
	require.Equal(t, "## Folder 0, "+a+`

In .agents/skills:

- one: Does one thing.
- two: Does another.

In .claude/skills:

- three (folder): Has another name.

## Folder 1, `+b+`

- four: Is at the top.
`, list)
}

// Of many skills each root has its share, and descriptions are as long as there is room for.
//
// Clause D1.
func TestLongSkillList(t *testing.T) {
	files := make(map[string]string)
	long := strings.Repeat("Say more about it. ", 20)
	for i := range 20 {
		files[fmt.Sprintf("first/.agents/skills/f%03d/SKILL.md", i)] =
			skill(fmt.Sprintf("f%03d", i), long)
	}
	for i := range 161 {
		files[fmt.Sprintf("large/.agents/skills/l%03d/SKILL.md", i)] =
			skill(fmt.Sprintf("l%03d", i), long)
	}
	top := tree(t, files)
	first, large := filepath.Join(top, "first"), filepath.Join(top, "large")
	skills := scan(t, discovery.Options{}, first, large).Active(discovery.Skill)
	list, left := discovery.ListSkills(skills, 16<<10)
	require.Zero(t, left)
	require.LessOrEqual(t, len(list), 16<<10)
	require.Greater(t, len(list), 15<<10)
	require.Contains(t, list, "- f000: "+strings.TrimSpace(long)+"\n",
		"a large root does not shorten the skills of another")
	require.Contains(t, list, "- l160: Say more about it.")

	list, left = discovery.ListSkills(skills, 4<<10)
	require.LessOrEqual(t, len(list), 4<<10)
	require.Positive(t, left)
	require.Equal(t, len(skills)-left, strings.Count(list, "\n- "))
	require.Contains(t, list, "- f019: ")
	require.Contains(t, list, "- l000: ")

	list, left = discovery.ListSkills(nil, 100)
	require.Empty(t, list)
	require.Zero(t, left)
}

// Clause D1.
func TestFindSkills(t *testing.T) {
	top := manySkills(t)
	c := scan(t, discovery.Options{}, top+"/first", top+"/second", top+"/large")
	require.Len(t, c.Active(discovery.Skill), 182)
	require.Equal(t, []string{"pdf-forms", "tables", "l150"},
		names(c.FindSkills("fill a PDF form"))[:3], "rare words count more than common ones")
	require.Equal(t, []string{"pdf-forms"}, names(c.FindSkills("FORMS")))
	require.Empty(t, c.FindSkills("user"), "a model must not use it by itself")
	require.Empty(t, c.FindSkills("nothing"))
	require.Empty(t, c.FindSkills(" !? "))
}

// manySkills makes three folders with 181 skills that a model may use, and one that it may not.
func manySkills(t *testing.T) (top string) {
	files := map[string]string{
		"first/.agents/skills/tables/SKILL.md":     skill("tables", "Reads a table of a PDF."),
		"second/.claude/skills/pdf-forms/SKILL.md": skill("pdf-forms", "Fills in a form."),
		"second/.claude/skills/private/SKILL.md": "---\nname: private\ndescription: For the " +
			"user.\ndisable-model-invocation: true\n---\nDo it.\n",
	}
	for i := range 179 {
		files[fmt.Sprintf("large/skills/l%03d/SKILL.md", i)] =
			skill(fmt.Sprintf("l%03d", i), "Does a thing, one of many.")
	}
	files["large/skills/l150/SKILL.md"] = skill("l150", "Fills a bucket.")
	return tree(t, files)
}

// Clause A25.
func TestLongValues(t *testing.T) {
	name := strings.Repeat("n", 65)
	top := tree(t, map[string]string{
		".agents/skills/" + name + "/SKILL.md": skill(name, strings.Repeat("é", 1025)+"\u202e"),
		".agents/skills/fits/SKILL.md":         skill("fits", strings.Repeat("é", 1024)),
		".cursor/rules/globs.mdc": "---\nglobs: " + strings.Repeat("{a,b}", 9) +
			", [, ok/*.go, " + strings.Repeat("x,", 70) + "\n---\nx",
	})
	c := scan(t, discovery.Options{}, top)
	require.Equal(t, []string{"the description has 1025 characters; the first 1024 are used"},
		c.Named(discovery.Skill, name)[0].Diagnostics)
	require.Equal(t, strings.Repeat("é", 1023)+"…", c.Named(discovery.Skill, name)[0].Description)
	require.Empty(t, c.Named(discovery.Skill, "fits")[0].Diagnostics)
	rule := c.Of(discovery.Instruction)[0]
	require.Equal(t, "ok/*.go", rule.Applies.Globs[0])
	require.Len(t, rule.Diagnostics, 3, "%v", rule.Diagnostics)
}
