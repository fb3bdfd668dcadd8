package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// grown makes roots with artifacts, spread evenly over roots and kinds, among other files.
func grown(b *testing.B, roots, artifacts, files int) []string {
	b.Helper()
	top := tree(b, nil)
	dirs := make([]string, roots)
	for r := range dirs {
		dirs[r] = filepath.Join(top, fmt.Sprint("root", r))
		for i := range artifacts / roots {
			write(b, filepath.Join(dirs[r], artifactPath(r, i)),
				skill(fmt.Sprint("name-", r, "-", i),
					"Does a thing. Use it when that thing is to be done.")+fmt.Sprintf(body, i))
		}
		for i := range files / roots {
			dir := filepath.Join(dirs[r], fmt.Sprint("src", i/5000), fmt.Sprint("pkg", i/100%50))
			if i%100 == 0 {
				require.NoError(b, os.MkdirAll(dir, 0o755))
				require.NoError(b, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
			} else { // cheaper to create
				require.NoError(b, os.Link(filepath.Join(dir, "file"),
					filepath.Join(dir, fmt.Sprint("file", i))))
			}
		}
	}
	return dirs
}

// body is the text of a skill of the usual size.
const body = "See %05900d.\n"

// artifactPath returns the path of the i-th artifact of root r: four skills for each command and
// rule.
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

// BenchmarkScan scans four roots. The files are in the system's cache.
func BenchmarkScan(b *testing.B) {
	for name, size := range map[string]struct{ artifacts, files int }{
		"500-artifacts": {500, 200_000}, // among other files
		"52-artifacts":  {52, 0},
	} {
		b.Run(name, func(b *testing.B) {
			ws := open(b, grown(b, 4, size.artifacts, size.files)...)
			defer ws.Close()
			for b.Loop() {
				c, err := discovery.Scan(b.Context(), ws)
				require.NoError(b, err)
				require.Len(b, c.Artifacts(), size.artifacts)
			}
		})
	}
}
