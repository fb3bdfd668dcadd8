package discovery_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

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
			write(b, filepath.Join(dirs[r], artifactPath(r, i)), skill(fmt.Sprint("name-", r, "-", i), "Does a thing. Use it when that thing is to be done.")+fmt.Sprintf(body, i))
		}
		for i := range files / roots {
			dir := filepath.Join(dirs[r], fmt.Sprint("src", i/5000), fmt.Sprint("pkg", i/100%50))
			if i%100 == 0 {
				require.NoError(b, os.MkdirAll(dir, 0o755))
				require.NoError(b, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
			} else { // which is cheaper to make
				require.NoError(b, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, fmt.Sprint("file", i))))
			}
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

// artifactPath is the path of the i-th artifact of root r: four skills for each command and rule.
func artifactPath(r, i int) string {
	switch {
	case i == 0:
		return "AGENTS.md"
	case i%6 == 1:
		return fmt.Sprintf(".claude/commands/command%d.md", i)
	case i%6 == 2:
		return fmt.Sprintf(".github/instructions/rule%d.instructions.md", i)
	default:
		return fmt.Sprintf(".agents/skills/name-%d-%d/SKILL.md", r, i)
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

// BenchmarkScan compares scans with walking the same candidate directories bare, by the processor time that they take.
//
// list lists the candidate directories by [filepath.WalkDir], and looks where else a SKILL.md may be. read also reads each
// candidate by [os.ReadFile], which is the least that whoever wants to know a skill's name has to do. list opens no file,
// and costs a third of read: no scan can come near it. So what containment, parsing and the catalog add is
// cold/read, where cold is the first scan of a workspace, with the files in the cache of the system.
func BenchmarkScan(b *testing.B) {
	b.Run("500-artifacts", func(b *testing.B) { benchScan(b, grown(b, 4, 500, 200_000), 500) })
	b.Run("52-artifacts", func(b *testing.B) { benchScan(b, grown(b, 4, 52, 0), 52) })
}

// inARow is how often each is done before it is the next one's turn, so that none pays for what the one before it
// left in the caches of the processor.
const inARow = 20

// benchScan does all three in turn, so that what else the machine does hits all alike.
func benchScan(b *testing.B, dirs []string, artifacts int) {
	ws := open(b, dirs...)
	defer ws.Close()
	catalog, err := discovery.Scan(b.Context(), ws, discovery.Options{})
	require.NoError(b, err)
	require.Len(b, catalog.Artifacts(), artifacts)
	var list, read, cold time.Duration
	rounds := 0
	for b.Loop() {
		rounds += inARow
		list += spent(func() { bare(b, dirs, func(string) {}) })
		read += spent(func() { bare(b, dirs, func(path string) { _, _ = os.ReadFile(path) }) })
		cold += spent(func() {
			_, err := discovery.Scan(b.Context(), ws, discovery.Options{})
			require.NoError(b, err)
		})
	}
	for name, took := range map[string]time.Duration{"list": list, "read": read, "cold": cold} {
		b.ReportMetric(float64(took.Microseconds())/float64(rounds), name+"-µs")
	}
	b.ReportMetric(float64(cold)/float64(list), "cold/list")
	b.ReportMetric(float64(cold)/float64(read), "cold/read")
}

// BenchmarkSession is what discovery adds to a new session of four roots and 52 artifacts, by the clock.
func BenchmarkSession(b *testing.B) {
	dirs := grown(b, 4, 52, 0)
	ws := open(b, dirs...)
	defer ws.Close()
	for b.Loop() {
		_, err := discovery.Scan(b.Context(), ws, discovery.Options{})
		require.NoError(b, err)
	}
}
