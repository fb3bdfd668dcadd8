package discovery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause A25.
func TestConventions(t *testing.T) {
	top := tree(t, map[string]string{"docs/agents/x.md": "x", "AGENTS.md": "y",
		"prompts/a/go.md": "Go."})
	o := discovery.Options{Conventions: append([]discovery.Convention{
		{Pattern: "docs/agents/*.md", Format: discovery.Text},
		{Pattern: "prompts/**/*.md", Format: discovery.CommandFile},
	}, discovery.Conventions()...)}
	c := scan(t, o, top)
	require.Equal(t, []string{"docs/agents/x.md", "AGENTS.md"},
		names(c.Active(discovery.Instruction)))
	require.Equal(t, []string{"a:go"}, names(c.Active(discovery.Command)))

	ws := open(t, top)
	defer ws.Close()
	for _, place := range []string{"", "/x", "a//b", "../x", "**/x.md", "a/**", "a/[", `a\b`,
		"c:x"} {
		_, err := discovery.Scan(t.Context(), ws,
			discovery.Options{Conventions: []discovery.Convention{{Pattern: place,
				Format: discovery.Text}}})
		require.ErrorContains(t, err, fmt.Sprintf("invalid convention %q: ", place))
	}
	_, err := discovery.Scan(t.Context(), ws,
		discovery.Options{Conventions: []discovery.Convention{{Pattern: "x"}}})
	require.ErrorContains(t, err, "no format")
}

// Clause A25.
func TestOtherDirectoriesAreNotScanned(t *testing.T) {
	files := map[string]string{".agents/skills/one/SKILL.md": skill("one", "One.")}
	for i := range 100 {
		files[fmt.Sprintf("src/pkg%d/deep/file.go", i)] = "package x"
		files[fmt.Sprintf("node_modules/pkg%d/SKILL.md", i)] = skill("no", "No.")
	}
	c := scan(t, limited("MaxDirs", 2), tree(t, files))
	require.Empty(t, c.LimitsReached(), "the skill's directory and src are all that it looks into")
	require.Equal(t, []string{"one"}, names(c.Of(discovery.Skill)))
}

// Skills and commands are found in the hidden directory of any agent, also of one without a row,
// but not in directories of git or of dependencies.
func TestAnyAgentsDirectory(t *testing.T) {
	top := tree(t, map[string]string{
		".claude/skills/a/SKILL.md": skill("a", "A."), ".new/skills/x/b/SKILL.md": skill("b", "B."),
		".zcode/skills/c/SKILL.md": skill("c", "C."), ".new/commands/git/go.md": "Go.",
		".new/commands/run.toml": "prompt = \"Run.\"\n", ".old/command/stop.md": "Stop.",
		".git/skills/d/SKILL.md": skill("d", "D."), ".venv/commands/no.md": "No.",
		".new/deep/skills/e/SKILL.md": skill("e", "E."), ".file": "",
	})
	c := scan(t, discovery.Options{}, top)
	require.Equal(t, []string{"a", "b", "c"}, names(c.Of(discovery.Skill)))
	require.Equal(t, []string{"git:go", "run", "stop"}, names(c.Of(discovery.Command)))
	require.Equal(t, ".new/skills/**/SKILL.md", c.Of(discovery.Skill)[1].Pattern)
}
