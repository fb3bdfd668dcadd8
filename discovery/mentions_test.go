package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// The skills of a directory are mentioned when something in it is used, once each, and are no
// instructions.
//
// Clause A25.
func TestSkillsOfDirectoriesAreMentioned(t *testing.T) {
	top := tree(t, map[string]string{
		"packages/a/.claude/skills/deploy/SKILL.md": skill("deploy", "Deploys a."),
		"packages/a/.agents/skills/test/SKILL.md":   skill("test", "Tests a."),
		"packages/a/.claude/skills/own/SKILL.md": "---\nname: own\ndescription: Of users.\n" +
			"disable-model-invocation: true\n---\n",
		"packages/a/main.go": "package a", "packages/b/main.go": "package b",
	})
	ws := open(t, top)
	defer ws.Close()
	var m discovery.Mentions
	dir := filepath.Join(top, "packages", "a")
	want := ""
	for _, s := range [][2]string{{".agents/skills/test", "Tests a."}, {".claude/skills/deploy", "Deploys a."}} {
		want += fmt.Sprintf("[What is in %q has a skill: read %q when you need it: %s]\n", dir,
			filepath.Join(dir, filepath.FromSlash(s[0]), "SKILL.md"), s[1])
	}
	require.Empty(t, m.Lines(t.Context(), ws, filepath.Join(top, "packages", "b", "main.go")))
	require.Equal(t, want, m.Lines(t.Context(), ws, filepath.Join(dir, "main.go")))
	require.Empty(t, m.Lines(t.Context(), ws, filepath.Join(dir, "main.go")))

	c := scan(t, discovery.Options{}, top)
	list, err := c.For(t.Context(), filepath.Join(dir, "main.go"))
	require.NoError(t, err)
	require.Empty(t, list)
	below, _ := c.Below(t.Context())
	require.Empty(t, below)
}

// A root's instructions for some files are mentioned when one of these is used, each file once,
// even if a link leads to it.
func TestRulesForFilesAreMentioned(t *testing.T) {
	top := tree(t, map[string]string{
		".cursor/rules/sql.mdc":                  "---\ndescription: Safety\nglobs: '*.sql'\n---\nAsk first.\n",
		".claude/rules/go.md":                    "---\npaths: ['**/*.go']\n---\nUse gofmt.\n",
		".github/instructions/x.instructions.md": "---\napplyTo: 'x/*'\n---\nOf x.\n",
		"x/.cursor/rules/go.mdc":                 "---\nglobs: 'y/*.go'\n---\nOf x.\n",
		".claude/rules/always.md":                "Be brief.", "AGENTS.md": "Be kind.",
		"db/a.sql": "", "db/b.sql": "", "x/a.go": "", "x/y/AGENTS.md": "Of y.", "x/y/z.txt": "",
		"w/AGENTS.md": "Of w.", "w/a.txt": "",
	})
	require.NoError(t, os.Symlink(filepath.Join(top, "x", "y"), filepath.Join(top, "linked")))
	ws := open(t, top)
	defer ws.Close()
	var m discovery.Mentions
	rule := func(globs, path string) string {
		dir, _, _ := strings.Cut(path, ".")
		return fmt.Sprintf("[Files in %q that match %s have instructions: read %q before you go on.]\n",
			filepath.Join(top, dir), globs, filepath.Join(top, filepath.FromSlash(path)))
	}
	for _, step := range [][2]string{
		{"README.md", ""}, {"db/a.sql", rule("*.sql", ".cursor/rules/sql.mdc")}, {"db/b.sql", ""},
		{"x/a.go", rule("x/*", ".github/instructions/x.instructions.md") +
			rule("**/*.go", ".claude/rules/go.md")},
		{"x/y/z.txt", fmt.Sprintf("[What is in %q has instructions: read %q before you go on.]\n",
			filepath.Join(top, "x", "y"), filepath.Join(top, "x", "y", "AGENTS.md"))},
		{"linked/z.txt", ""}, {"w/AGENTS.md", ""}, {"w/a.txt", ""},
		{"x/y/a.go", rule("y/*.go", "x/.cursor/rules/go.mdc")},
	} {
		require.Equal(t, step[1], m.Lines(t.Context(), ws, filepath.Join(top, filepath.FromSlash(step[0]))), step[0])
	}
}
