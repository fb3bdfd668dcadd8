package discovery_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause A25.
func TestFor(t *testing.T) {
	top := tree(t, map[string]string{"x/AGENTS.md": "Of x.", "x/y/CLAUDE.md": "Of y. @more.md",
		"x/y/more.md": "more", "x/y/AGENTS.md": ""})
	c := scan(t, discovery.Options{}, top)
	found := func(path string) discovery.Instructions {
		list, err := c.For(t.Context(), filepath.Join(top, path))
		require.NoError(t, err)
		return c.Assemble(list)
	}
	require.Empty(t, found("main.go").Sources)
	require.Len(t, found("x/a.go").Sources, 1)
	require.Len(t, found("x/y/b.go").Sources, 3)
	require.Len(t, found("x/y/new/b.go").Sources, 3)
	write(t, top+"/x/y/more.md", "changed")
	require.Contains(t, found("x/y/b.go").String(), "changed", "files are read when For is called")
}

// A limit that was reached is in the list, but not among the instructions.
//
// Clause A25.
func TestForReportsLimits(t *testing.T) {
	files := map[string]string{"x/AGENTS.md": "Of x."}
	for i := range 5 {
		files[fmt.Sprintf("x/.cursor/rules/%d/rule.mdc", i)] = "---\nalwaysApply: true\n---\nx"
	}
	top := tree(t, files)
	c := scan(t, discovery.Options{"MaxDirs": 2}, top)
	list, err := c.For(t.Context(), filepath.Join(top, "x", "main.go"))
	require.NoError(t, err)
	require.Len(t, list, 4)
	cut := list[3]
	require.Equal(t, discovery.Invalid, cut.State)
	require.Equal(t, filepath.Join(top, "x", ".cursor", "rules"), cut.Path)
	require.Contains(t, cut.Reason,
		"was not scanned completely: the limit of 2 directories was reached at "+cut.Path)
	require.Len(t, c.Assemble(list).Sources, 3)
	_, complete := c.Below(t.Context())
	require.False(t, complete)
}

// Clause A23.
func TestForOutsideTheRoots(t *testing.T) {
	top := tree(t, map[string]string{"a/AGENTS.md": "x", "AGENTS.md": "above"})
	_, err := scan(t, discovery.Options{}, top+"/a").For(t.Context(), top+"/x.go")
	var outside *workspace.OutsideError
	require.ErrorAs(t, err, &outside)
}

// Clause D2.
func TestNested(t *testing.T) {
	files := map[string]string{
		"a/AGENTS.md": "Of a root.", "a/x/AGENTS.md": "Of x.", "a/x/CLAUDE.md": "Not used.", "a/x/y/.claude/CLAUDE.md": "Of y.", "a/b/GEMINI.md": "Of b.", "a/b/e/AGENTS.md": "Of e, in two roots.",
		"a/z/AGENTS.md": "", "a/w/agents.md": "A page about agents.", "a/.hidden/AGENTS.md": "Hidden.", "a/node_modules/p/AGENTS.md": "Of a package.", "c/d/CLAUDE.md": "Of d.",
	}
	top := tree(t, files)
	list, complete := scan(t, discovery.Options{}, top+"/a", top+"/c",
		top+"/a/b").Below(t.Context())
	require.True(t, complete)
	var found []string
	for _, a := range active(list) {
		found = append(found, strings.TrimPrefix(a.Path, top)+" for "+strings.TrimPrefix(a.Dir(),
			top))
	}
	require.Equal(t, []string{"/a/x/AGENTS.md for /a/x", "/a/b/e/AGENTS.md for /a/b/e", "/a/x/y/.claude/CLAUDE.md for /a/x/y",
		"/c/d/CLAUDE.md for /c/d"}, found)

	for i := range 600 {
		files[fmt.Sprintf("a/many/%03d/AGENTS.md", i)] = "One of many."
	}
	top = tree(t, files)
	list, complete = scan(t, discovery.Options{}, top+"/a").Below(t.Context())
	require.False(t, complete)
	require.Greater(t, len(active(list)), 400)
	require.Less(t, len(active(list)), 500)
}

// active returns the artifacts that are active.
func active(list []discovery.Artifact) []discovery.Artifact {
	return slices.DeleteFunc(list, func(a discovery.Artifact) bool {
		return a.State != discovery.Active
	})
}

// Nothing speaks for a folder from a directory of dependencies, or one that git ignores. A root
// that a repository above it ignores does.
func TestOthersDoNotSpeak(t *testing.T) {
	files := map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/hooks/AGENTS.md": "No.",
		".gitignore": "/build/\n.cache\ngen/*\n*.local.md\n/lib/out/\n",
	}
	foreign := []string{"node_modules/x", "app/node_modules/@a/b", ".venv/lib", "vendor/y", "build",
		".claude/worktrees/w", ".cache/z", "gen", "gen/deep", "lib/out/deep"}
	for _, dir := range foreign {
		files[dir+"/AGENTS.md"] = "Of others."
		files[dir+"/.claude/skills/s/SKILL.md"] = skill("s", "Of others.")
		files[dir+"/.cursor/rules/r.mdc"] = "---\nalwaysApply: true\n---\nOf others.\n"
		files[dir+"/index.ts"] = ""
	}
	own := []string{"app", "lib", "docs/vendors", "packages/build"}
	for _, dir := range own {
		files[dir+"/AGENTS.md"], files[dir+"/CLAUDE.local.md"], files[dir+"/x"] = "Own.", "Own.", ""
	}
	files["build/SKILL.md"] = skill("build", "Of others.")
	top := tree(t, files)
	lines := func(root, path string) string {
		ws := open(t, root)
		defer ws.Close()
		m := discovery.Mentions{Roots: true}
		return m.Lines(t.Context(), ws, filepath.Join(top, filepath.FromSlash(path)))
	}
	require.Empty(t, lines(top, ".git/hooks/x"))
	for _, dir := range foreign {
		said := lines(top, dir+"/index.ts")
		require.NotContains(t, said, filepath.Join(top, filepath.FromSlash(dir)), dir)
		root := filepath.Join(top, filepath.FromSlash(dir))
		require.Contains(t, lines(root, dir+"/index.ts"), "has instructions", dir)
	}
	for _, dir := range own {
		require.Equal(t, 2, strings.Count(lines(top, dir+"/x"), "has instructions"), dir)
	}
	c := scan(t, discovery.Options{}, top)
	below, _ := c.Below(t.Context())
	for _, a := range append(c.Artifacts(), below...) {
		if strings.HasPrefix(a.Description, "Of others.") {
			require.Equal(t, discovery.Unused, a.State, a.Path)
		}
	}
	require.Equal(t, "git ignores build", c.Of(discovery.Skill)[0].Reason)
	both := scan(t, discovery.Options{}, top, filepath.Join(top, "build"))
	require.Equal(t, filepath.Join(top, "build", "SKILL.md"), both.Named(discovery.Skill, "build")[0].Path)
	require.Equal(t, discovery.Active, both.Named(discovery.Skill, "build")[0].State)
	list, err := c.For(t.Context(), filepath.Join(top, "vendor", "y", "x"))
	require.NoError(t, err)
	require.NotEmpty(t, list, "why they are not used")
	for _, a := range list {
		require.Contains(t, a.Reason, "vendor")
	}
}
