package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/discovery"
)

// places are the files that a random root may contain.
var places = []struct {
	path, text string
	kind       discovery.Kind
}{
	{".agents/skills/NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n", discovery.Skill},
	{".claude/skills/NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n", discovery.Skill},
	{".github/skills/deep/NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n",
		discovery.Skill},
	{"NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n", discovery.Skill},
	{"skills/NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n", discovery.Skill},
	{"plugins/NAME/skills/NAME/SKILL.md", "---\nname: NAME\ndescription: WORD\n---\n",
		discovery.Skill},
	{".claude-plugin/marketplace.json",
		`{"plugins": [{"name": "p", "source": "./plugins/NAME"}, {"name": "q", "source": "../NAME"}]}`, discovery.Plugin},
	{".gemini/commands/NAME.toml", "prompt = 'WORD'", discovery.Command},
	{"opencode.json", `{"mcp": {"NAME": {"type": "local", "command": ["WORD"]}}}`,
		discovery.MCPServer},
	{".claude/commands/NAME.md", "---\ndescription: WORD\n---\nDo it.\n", discovery.Command},
	{".github/prompts/NAME.prompt.md", "---\ndescription: WORD\n---\nDo it.\n", discovery.Command},
	{".cursor/rules/NAME.mdc", "---\nglobs: **/*\n---\nWORD\n", discovery.Instruction},
	{".claude/rules/NAME.md", "WORD\n", discovery.Instruction},
	{".github/instructions/NAME.instructions.md", "WORD\n", discovery.Instruction},
	{".mcp.json", `{"mcpServers": {"NAME": {"command": "WORD"}}}`, discovery.MCPServer},
	{".vscode/mcp.json", `{"servers": {"NAME": {"command": "WORD"}}}`, discovery.MCPServer},
	{"AGENTS.md", "WORD\n", discovery.Instruction},
	{"CLAUDE.md", "WORD @NAME\n", discovery.Instruction},
	{".agents/skills/NAME/SKILL.md", "no frontmatter", discovery.Skill},
}

// sown makes a random root at dir.
func sown(t *rapid.T, dir, word string) {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for i := range places {
		if rapid.Bool().Draw(t, "has") {
			name := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "name")
			filled := strings.NewReplacer("NAME", name, "WORD", word)
			write(t, filepath.Join(dir, filled.Replace(places[i].path)),
				filled.Replace(places[i].text))
		}
	}
}

// scanned scans roots.
func scanned(t *rapid.T, roots ...string) *discovery.Catalog {
	ws := open(t, roots...)
	defer ws.Close()
	c, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	return c
}

// temporary is a directory for one run of a property.
func temporary(t *rapid.T) string {
	top, err := os.MkdirTemp("", "discovery")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	top, err = filepath.EvalSymlinks(top)
	require.NoError(t, err)
	return top
}

// space returns what the names of a kind are unique in: skills and commands share one.
func space(k discovery.Kind) string {
	switch k {
	case discovery.Skill, discovery.Command:
		return "slash"
	default:
		return string(k)
	}
}

// Clause A20.
func TestOrderOfRootsDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := temporary(t)
		var roots []string
		alone := make(map[string]map[string]string) // by root: the path that a name stands for
		for i := range rapid.IntRange(2, 4).Draw(t, "roots") {
			dir := filepath.Join(top, fmt.Sprint("root", i))
			sown(t, dir, fmt.Sprint("word", i))
			roots = append(roots, dir)
			alone[dir] = winners(scanned(t, dir))
		}
		order := rapid.Permutation(roots).Draw(t, "order")
		want := make(map[string]string)
		for _, root := range slices.Backward(order) {
			for name, path := range alone[root] {
				want[name] = path
			}
		}
		c := scanned(t, order...)
		require.Equal(t, want, winners(c))
		for _, a := range c.Artifacts() {
			require.Equal(t, order[a.Root.Index], a.Root.Dir.String())
			require.NotEqual(t, a.State == discovery.Active, a.Reason != "",
				"artifacts that are not active have a reason: %v", a)
		}
	})
}

// winners returns the path of the active artifact of each name.
func winners(c *discovery.Catalog) map[string]string {
	paths := make(map[string]string)
	for _, a := range c.Artifacts() {
		if a.State == discovery.Active && a.Kind != discovery.Instruction {
			paths[space(a.Kind)+" "+a.Name] = a.Path
		}
	}
	return paths
}

// Clause A25.
func TestAdditionalRootsEqualCwd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := temporary(t)
		dir, before, after := filepath.Join(top, "dir"), filepath.Join(top,
			"before"), filepath.Join(top, "after")
		sown(t, dir, "word")
		sown(t, before, "before")
		sown(t, after, "after")
		asCwd := of(scanned(t, dir), dir)
		for _, roots := range [][]string{{dir, after}, {before, dir}, {after, before, dir}} {
			c := scanned(t, roots...)
			now := of(c, dir)
			require.Equal(t, len(asCwd), len(now), "nothing is lost")
			for i, was := range asCwd {
				is := now[i]
				if winner := shadowing(c, is); winner != nil && winner.Root.Index < is.Root.Index {
					require.Contains(t, []discovery.State{discovery.Active, discovery.Shadowed},
						was.State)
					continue
				}
				require.Equal(t, line(was, top), line(is, top))
			}
		}
	})
}

// shadowing returns the artifact that shadows a, or nil.
func shadowing(c *discovery.Catalog, a discovery.Artifact) *discovery.Artifact {
	for _, other := range c.Artifacts() {
		if a.State == discovery.Shadowed && other.State == discovery.Active &&
			other.Path == a.ShadowedBy {
			return &other
		}
	}
	return nil
}

// of returns the artifacts of one root.
func of(c *discovery.Catalog, root string) []discovery.Artifact {
	return slices.DeleteFunc(c.Artifacts(),
		func(a discovery.Artifact) bool { return a.Root.Dir.String() != root })
}

// Clause A22.
func TestSessionsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := temporary(t)
		var dirs [4]string
		for i := range dirs {
			dirs[i] = filepath.Join(top, fmt.Sprint("root", i))
			sown(t, dirs[i], fmt.Sprint("word", i))
		}
		sets := [][]string{{dirs[0], dirs[1]}, {dirs[2], dirs[3]}, {dirs[1], dirs[2]}}
		got := make([]string, len(sets))
		var all sync.WaitGroup
		for i, roots := range sets {
			ws := open(t, roots...)
			defer ws.Close()
			all.Go(func() {
				c, err := discovery.Scan(t.Context(), ws)
				if err == nil {
					got[i] = summary(c, top) + c.Instructions(nil).String()
				}
			})
		}
		all.Wait()
		for i, roots := range sets {
			c := scanned(t, roots...)
			require.Equal(t, summary(c, top)+c.Instructions(nil).String(), got[i])
			for j, dir := range dirs {
				if !slices.Contains(roots, dir) {
					require.NotContains(t, got[i], fmt.Sprint("word", j))
					require.NotContains(t, got[i], fmt.Sprint("root", j))
				}
			}
		}
	})
}

// Clause A23.
func TestNothingOutsideTheRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := temporary(t)
		a, b, outside := filepath.Join(top, "a"), filepath.Join(top, "b"), filepath.Join(top,
			"outside")
		sown(t, a, "word")
		sown(t, b, "word")
		sown(t, outside, "SECRET")
		write(t, filepath.Join(outside, "SKILL.md"), "---\ndescription: SECRET\n---\n")
		write(t, filepath.Join(outside, "CLAUDE.md"), "SECRET")
		for range rapid.IntRange(1, 8).Draw(t, "links") {
			at := rapid.SampledFrom([]string{a, b}).Draw(t, "root") + "/" +
				rapid.SampledFrom(linkPaths).Draw(t, "path")
			target := strings.NewReplacer("TOP",
				top).Replace(rapid.SampledFrom(linkTargets).Draw(t, "target"))
			if os.MkdirAll(filepath.Dir(at), 0o755) == nil {
				_ = os.Symlink(target, at)
			}
		}
		write(t, filepath.Join(a, "GEMINI.md"),
			"@../outside/CLAUDE.md @"+outside+"/CLAUDE.md @docs/CLAUDE.md @docs")
		c := scanned(t, a, b)
		text := summary(c, top) + c.Instructions(nil).String()
		require.NotContains(t, text, "SECRET")
		for _, found := range c.Artifacts() {
			if found.Ref.Rel() == "" {
				require.NotEqual(t, discovery.Active, found.State)
				continue
			}
			real, err := filepath.EvalSymlinks(found.Path)
			require.NoError(t, err)
			require.Equal(t, real, found.Ref.Real())
			require.True(t, strings.HasPrefix(real, a+"/") || strings.HasPrefix(real, b+"/"),
				"%s is outside", real)
		}
	})
}

var linkPaths = []string{
	"AGENTS.md", "CLAUDE.md", ".claude", ".agents", ".agents/skills", ".claude/skills", ".agents/skills/linked", ".agents/skills/one/more",
	".agents/skills/linked/SKILL.md", ".mcp.json", ".vscode", ".claude/commands/linked.md", ".cursor/rules/deep", "linked", "docs", "SKILL.md",
}

var linkTargets = []string{
	"../outside", "../../outside", "../../../outside", "../../../../outside", "TOP/outside", "TOP/a", "TOP/b/.agents", "../b", "../../b/.claude/skills",
	".", "..", "../outside/CLAUDE.md", "TOP/outside/SKILL.md", "TOP/b/AGENTS.md", "../../../outside/.agents/skills/one", "docs/../../outside", "nowhere",
}
