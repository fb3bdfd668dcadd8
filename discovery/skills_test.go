package discovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	var rules []string
	for _, d := range c.Named(discovery.Skill, name)[0].Diagnostics {
		rules = append(rules, d.Rule)
	}
	require.Equal(t, []string{"description-length"}, rules)
	require.Equal(t, strings.Repeat("é", 1023)+"…", c.Named(discovery.Skill, name)[0].Description)
	require.Empty(t, c.Named(discovery.Skill, "fits")[0].Diagnostics)
	rule := c.Of(discovery.Instruction)[0]
	require.Equal(t, "ok/*.go", rule.Applies.Globs[0])
	require.Len(t, rule.Diagnostics, 4, "%v", rule.Diagnostics)
}

// What would take memory or time without end is refused, and the rest is found.
//
// Clause A25.
func TestYAMLBombs(t *testing.T) {
	files := map[string]string{".agents/skills/good/SKILL.md": skill("good", "Good.")}
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	for name, bomb := range map[string]string{
		"brackets": "x: " + strings.Repeat("[", 60_000),
		"braces":   "x: " + strings.Repeat("{a: ", 15_000),
		"dashes":   "x: \n" + strings.Repeat("- ", 30_000),
		"laughs":   laughs.String(),
		"keys":     strings.Repeat("? ", 30_000),
		"anchors":  strings.Repeat("&a ", 20_000),
		"quotes":   "x: '" + strings.Repeat("''", 30_000),
		"comments": strings.Repeat("# c\n", 15_000) + "x: y",
		"blanks":   strings.Repeat("x:\n ", 15_000),
	} {
		files[".agents/skills/"+name+"/SKILL.md"] = "---\n" + bomb + "\n---\n"
	}
	c := scan(t, limited("Timeout", int(time.Minute)), tree(t, files))
	require.Len(t, c.Artifacts(), len(files))
	require.Equal(t, []string{"good"}, names(c.Active(discovery.Skill)))
	require.Empty(t, c.LimitsReached())
}
