package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/test/needs"
)

func TestUnified(t *testing.T) {
	old := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"
	require.Equal(t, "--- /a\n+++ /a\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -12,5 +12,4 @@\n 12\n 13\n 14\n-15\n 16\n",
		unified("/a", "/a", old, strings.NewReplacer("\n2\n", "\ntwo\n", "\n15\n",
			"\n").Replace(old)))
	require.Equal(t, "--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
		unified("/dev/null", "/a", "", "x"))
	require.Equal(t, "--- /a\n+++ \"/a\\nb\"\n@@ -1 +0,0 @@\n-x\n",
		unified("/a", "/a\nb", "x\n", ""))
	require.Empty(t, unified("/a", "/a", "x\n", "x\n"))
}

// Applying a diff with git gives the new text.
func TestGitAppliesDiffs(t *testing.T) {
	git := needs.Programs(t, "git")[0]
	dir := t.TempDir()
	line := rapid.SampledFrom([]string{"a", "b", "c", "d", "", "- x", "+ y", "@@"})
	text := rapid.Custom(func(t *rapid.T) string {
		lines := rapid.SliceOfN(line, 0, 30).Draw(t, "lines")
		return strings.Join(lines, "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		old, new := text.Draw(t, "old"), text.Draw(t, "new")
		patch := unified("a/f", "b/f", old, new)
		if old == new {
			return
		}
		path := filepath.Join(dir, "f")
		require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
		apply := exec.Command(git, "apply", "--unidiff-zero", "--whitespace=nowarn", "-")
		apply.Dir, apply.Stdin = dir, strings.NewReader(patch)
		apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := apply.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, patch)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, new, string(got), patch)
	})
}

// The lines that surround a change do not hide it, wherever it is.
func TestDiffIgnoresLinesAround(t *testing.T) {
	around := strings.Repeat("same\n", 10)
	for name, c := range map[string]struct{ old, new, hunk string }{
		"middle": {around + "a\n" + around, around + "b\n" + around,
			"@@ -8,7 +8,7 @@\n same\n same\n same\n-a\n+b\n same\n same\n same\n"},
		"end": {around, around + "b",
			"@@ -8,3 +8,4 @@\n same\n same\n same\n+b\n\\ No newline at end of file\n"},
		"beginning": {"a" + around, around,
			"@@ -1,4 +1,4 @@\n-asame\n+same\n same\n same\n same\n"},
		"only one line": {"a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n"},
		"more of them": {around, "same\n" + around,
			"@@ -8,3 +8,4 @@\n same\n same\n same\n+same\n"},
		"looks like hunk": {"@@ -1,1 +1,1 @@\n", "", "@@ -1 +0,0 @@\n-@@ -1,1 +1,1 @@\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "--- /a\n+++ /a\n"+c.hunk, unified("/a", "/a", c.old, c.new))
		})
	}
}

// Many changes in a file stay separate.
func TestDiffShowsEachOfManyChanges(t *testing.T) {
	var old, new strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&old, "%d\n", i)
		if i%10 == 5 {
			new.WriteString("changed ")
		}
		fmt.Fprintf(&new, "%d\n", i)
	}
	patch := unified("/a", "/a", old.String(), new.String())
	require.Equal(t, 500, strings.Count(patch, "\n-"))
	require.Equal(t, 500, strings.Count(patch, "\n+changed "))
}

func TestLongDiffIsBounded(t *testing.T) {
	const half = defaultMaxFileSize / 2
	numbers := func(from int) string {
		var b strings.Builder
		for i := from; b.Len() < defaultMaxFileSize-10; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	newlines := strings.Repeat("\n", defaultMaxFileSize)
	for name, c := range map[string]struct{ old, new, shown string }{
		"newlines, shorter":    {newlines, newlines[:half], ""},
		"newlines and letters": {newlines, strings.Repeat("x\n", half), "[too long to show"},
		"alternating": {strings.Repeat("a\nb\n", half/2), strings.Repeat("b\nb\n", half/2),
			"[too long to show"},
		"unrelated": {numbers(0), numbers(10_000_000), "[too long to show: "},
		"one change": {newlines[:half] + "a" + newlines[half+1:], newlines[:half] + "b" +
			newlines[half+1:], "-a\n+b\n"}, "long lines": {strings.Repeat("a", defaultMaxFileSize),
			strings.Repeat("b", defaultMaxFileSize), "-aaa"},
		"many lines": {strings.Repeat("a\n", maxDiffLines/2-10),
			strings.Repeat("b\n", maxDiffLines/2-10), "-a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var patch string
			allocated := allocates(func() { patch = unified("/a", "/a", c.old, c.new) })
			require.Less(t, allocated, uint64(20*defaultMaxFileSize))
			require.Contains(t, patch, c.shown)
		})
	}
}

// A last line without an end changes the lines of a diff only if it is one of them.
func TestChangedLinesAreWithoutContext(t *testing.T) {
	require.Equal(t, []string{"-a\n", "+b\n"}, changedLines("a\nlast", "b\nlast"))
	require.Equal(t, []string{"-a\n", "\\ No newline at end of file\n", "+a\n"},
		changedLines("a", "a\n"))
}
