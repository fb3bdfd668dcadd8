package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

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
