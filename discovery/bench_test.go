package discovery_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// grown is a set of roots with artifacts, spread evenly over roots and kinds, among other files.
func grown(b *testing.B, roots, artifacts, files int) []string {
	b.Helper()
	top := tree(b, nil)
	dirs := make([]string, roots)
	for r := range dirs {
		dirs[r] = filepath.Join(top, fmt.Sprint("root", r))
		for i := range artifacts / roots {
			write(b, filepath.Join(dirs[r], artifactPath(i)), skill(fmt.Sprint("name-", r, "-", i), "Does a thing. Use it when that thing is to be done.")+fmt.Sprintf(body, i))
		}
		for i := range files / roots {
			dir := filepath.Join(dirs[r], fmt.Sprint("src", i/5000), fmt.Sprint("pkg", i/100%50))
			if i%100 == 0 {
				require.NoError(b, os.MkdirAll(dir, 0o755))
			}
			require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o644))
		}
		require.NoError(b, filepath.WalkDir(dirs[r], func(path string, d fs.DirEntry, err error) error {
			if d.IsDir() {
				age(b, path)
			}
			return err
		}))
	}
	return dirs
}

// body is what a skill of the usual size says.
const body = "See %05900d.\n"

// artifactPath is the path of the i-th artifact of a root: two skills for each command and rule.
func artifactPath(i int) string {
	switch {
	case i == 0:
		return "AGENTS.md"
	case i%6 == 1:
		return fmt.Sprintf(".claude/commands/command%d.md", i)
	case i%6 == 2:
		return fmt.Sprintf(".github/instructions/rule%d.instructions.md", i)
	default:
		return fmt.Sprintf(".agents/skills/skill%d/SKILL.md", i)
	}
}

func benchScan(b *testing.B, dirs []string, artifacts int) {
	ws := open(b, dirs...)
	defer ws.Close()
	for b.Loop() {
		c, err := discovery.Scan(b.Context(), ws, discovery.Options{})
		require.NoError(b, err)
		require.Len(b, c.Artifacts(), artifacts)
	}
}

func benchRescan(b *testing.B, dirs []string) {
	ws := open(b, dirs...)
	defer ws.Close()
	c, err := discovery.Scan(b.Context(), ws, discovery.Options{})
	require.NoError(b, err)
	for b.Loop() {
		_, change, err := c.Rescan(b.Context())
		require.NoError(b, err)
		require.Equal(b, discovery.Same, change)
	}
}

// bare walks the directories that the table names, and looks where else a SKILL.md may be, without any of what a scan is for.
func bare(b *testing.B, dirs []string, visit func(path string)) {
	for _, root := range dirs {
		entries, err := os.ReadDir(root)
		require.NoError(b, err)
		for _, e := range entries {
			_, _ = os.Lstat(filepath.Join(root, e.Name(), "SKILL.md"))
		}
		visit(filepath.Join(root, "AGENTS.md"))
		for _, dir := range []string{".agents/skills", ".claude/skills", ".claude/commands", ".claude/rules",
			".github/skills", ".github/instructions", ".github/prompts", ".cursor/rules"} {
			_ = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					visit(path)
				}
				return nil
			})
		}
	}
}

func BenchmarkScan(b *testing.B) {
	dirs := grown(b, 4, 500, 200_000)
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			bare(b, dirs, func(string) {})
		}
	})
	b.Run("bare+read", func(b *testing.B) {
		for b.Loop() {
			bare(b, dirs, func(path string) { _, _ = os.ReadFile(path) })
		}
	})
	b.Run("cold", func(b *testing.B) { benchScan(b, dirs, 500) })
	b.Run("rescan", func(b *testing.B) { benchRescan(b, dirs) })
}

func BenchmarkScanOfASession(b *testing.B) {
	dirs := grown(b, 4, 52, 0)
	b.Run("cold", func(b *testing.B) { benchScan(b, dirs, 52) })
	b.Run("rescan", func(b *testing.B) { benchRescan(b, dirs) })
}
