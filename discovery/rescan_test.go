package discovery_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// settled makes a tree look unchanged for an hour, so that scans trust it.
func settled(t *testing.T, top string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Type()&os.ModeSymlink == 0 {
			age(t, path)
		}
		return nil
	}))
}

// rescanned is a rescan that must find what want says.
func rescanned(t *testing.T, c *discovery.Catalog, want discovery.Change) *discovery.Catalog {
	t.Helper()
	now, change, err := c.Rescan(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, change)
	return now
}

func rescanTree(t *testing.T) string {
	top := tree(t, map[string]string{
		"a/CLAUDE.md":                   "Of a. @more.md @missing.md",
		"a/more.md":                     "more",
		"a/.agents/skills/one/SKILL.md": skill("one", "One."),
		"a/src/main.go":                 "package main",
		"b/.claude/commands/fix.md":     "Fix it.",
		"b/lib/two/SKILL.md":            skill("two", "Two."),
		"b/other/SKILL.md":              skill("other", "Other."),
	})
	settled(t, top)
	return top
}

func TestA25_RescanOfAnUnchangedSetReturnsTheSameCatalog(t *testing.T) {
	top := rescanTree(t)
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	require.Same(t, c, rescanned(t, c, discovery.Same))
}

func TestA25_RescanOverlooksWhatNoConventionNames(t *testing.T) {
	top := rescanTree(t)
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	write(t, top+"/a/src/more.go", "package main")
	require.Same(t, c, rescanned(t, c, discovery.Same))
	require.NoError(t, os.RemoveAll(top+"/a/src"))
	link(t, "../b/lib/two", top+"/a/src")
	settled(t, top)
	require.Equal(t, []string{"one", "two", "other"}, names(rescanned(t, c, discovery.Changed).Active(discovery.Skill)))
}

func TestA25_RescanFindsWhatChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, top string)
		check  func(t *testing.T, c *discovery.Catalog)
	}{
		"an edited skill": {
			func(t *testing.T, top string) { write(t, top+"/a/.agents/skills/one/SKILL.md", skill("one", "Uno.")) },
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, "Uno.", c.Named(discovery.Skill, "one")[0].Description)
			},
		},
		"a new skill": {
			func(t *testing.T, top string) { write(t, top+"/a/.agents/skills/new/SKILL.md", skill("new", "New.")) },
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"new", "one", "other"}, names(c.Active(discovery.Skill)))
			},
		},
		"a skill in a directory that had none": {
			func(t *testing.T, top string) { write(t, top+"/a/src/SKILL.md", skill("src", "Src.")) },
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"one", "src", "other"}, names(c.Active(discovery.Skill)))
			},
		},
		"a skill that went": {
			func(t *testing.T, top string) { require.NoError(t, os.RemoveAll(top+"/a/.agents/skills/one")) },
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"other"}, names(c.Active(discovery.Skill)))
			},
		},
		"the first rules of a root": {
			func(t *testing.T, top string) {
				write(t, top+"/b/.cursor/rules/x.mdc", "---\nalwaysApply: true\n---\nx")
			},
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"CLAUDE.md", ".cursor/rules/x.mdc"}, names(c.Active(discovery.Instruction)))
			},
		},
		"an instruction file that comes first": {
			func(t *testing.T, top string) { write(t, top+"/a/AGENTS.md", "Instead.") },
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"AGENTS.md"}, names(c.Active(discovery.Instruction)))
			},
		},
		"an imported file": {
			func(t *testing.T, top string) { write(t, top+"/a/more.md", "MORE OF IT") },
			func(t *testing.T, c *discovery.Catalog) {
				require.Contains(t, c.Instructions(discovery.EveryRoot).String(), "MORE OF IT")
			},
		},
		"a file that was missing to an import": {
			func(t *testing.T, top string) { write(t, top+"/a/missing.md", "FOUND NOW") },
			func(t *testing.T, c *discovery.Catalog) {
				require.Contains(t, c.Instructions(discovery.EveryRoot).String(), "FOUND NOW")
			},
		},
		"a directory replaced by a link": {
			func(t *testing.T, top string) {
				require.NoError(t, os.RemoveAll(top+"/a/.agents/skills/one"))
				link(t, "../../../b/lib/two", top+"/a/.agents/skills/one")
			},
			func(t *testing.T, c *discovery.Catalog) {
				require.Equal(t, []string{"two", "other"}, names(c.Active(discovery.Skill)))
			},
		},
	} {
		t.Run("A25/"+name, func(t *testing.T) {
			top := rescanTree(t)
			c := scan(t, discovery.Options{}, top+"/a", top+"/b")
			before := summary(c, top)
			test.change(t, top)
			now := rescanned(t, c, discovery.Changed)
			test.check(t, now)
			require.Equal(t, before, summary(c, top), "a catalog does not change")
			fresh := scan(t, discovery.Options{}, top+"/a", top+"/b")
			require.Equal(t, summary(fresh, top), summary(now, top), "a rescan finds what a scan finds")
		})
	}
}

func TestA25_ALinkThatLeadsElsewhereIsNoticed(t *testing.T) {
	top := rescanTree(t)
	at := top + "/a/.agents/skills/linked"
	link(t, "../../../b/lib/two", at)
	settled(t, top)
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	require.Equal(t, []string{"two", "one", "other"}, names(c.Active(discovery.Skill)))
	require.Same(t, c, rescanned(t, c, discovery.Same), "a link that stays is no change")
	require.NoError(t, os.Remove(at))
	link(t, "../../../b/other", at)
	settled(t, top)
	require.Equal(t, []string{"other", "one"}, names(rescanned(t, c, discovery.Changed).Active(discovery.Skill)))
}

func TestA25_AMovedDirectoryThatIsLinkedBackIsNoticed(t *testing.T) {
	top := rescanTree(t)
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	require.NoError(t, os.Rename(top+"/a/.agents/skills/one", top+"/b/one"))
	link(t, "../../../b/one", top+"/a/.agents/skills/one")
	settled(t, top)
	now := rescanned(t, c, discovery.Changed)
	require.Equal(t, top+"/b/one/SKILL.md", now.Named(discovery.Skill, "one")[0].Ref.Real())
}

// The file has the same size and the same times: only its age says that it has to be read again.
func TestA25_AYoungFileIsNotTrustedToBeUnchanged(t *testing.T) {
	top := rescanTree(t)
	path := top + "/a/.agents/skills/one/SKILL.md"
	now := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, now, now))
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	require.NoError(t, os.WriteFile(path, []byte(skill("one", "Uno.")), 0o644))
	require.NoError(t, os.Chtimes(path, now, now))
	c = rescanned(t, c, discovery.Changed)
	require.Equal(t, "Uno.", c.Named(discovery.Skill, "one")[0].Description)
	rescanned(t, c, discovery.Same)
}

func TestA25_TouchingAFileChangesNothing(t *testing.T) {
	top := rescanTree(t)
	c := scan(t, discovery.Options{}, top+"/a", top+"/b")
	aWhile := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(top+"/a/.agents/skills/one/SKILL.md", aWhile, aWhile))
	now := rescanned(t, c, discovery.Same)
	require.NotSame(t, c, now)
	require.Same(t, now, rescanned(t, now, discovery.Same))
}
