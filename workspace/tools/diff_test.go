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
)

func TestUnified(t *testing.T) {
	old := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"
	require.Equal(t, "--- /a\n+++ /a\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -12,5 +12,4 @@\n 12\n 13\n 14\n-15\n 16\n",
		unified("/a", "/a", old, strings.NewReplacer("\n2\n", "\ntwo\n", "\n15\n", "\n").Replace(old)))
	require.Equal(t, "--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", unified("/dev/null", "/a", "", "x"))
	require.Equal(t, "--- /a\n+++ \"/a\\nb\"\n@@ -1 +0,0 @@\n-x\n", unified("/a", "/a\nb", "x\n", ""))
	require.Empty(t, unified("/a", "/a", "x\n", "x\n"))
}

// Applying a diff with git gives the new text.
func TestGitAppliesDiffs(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
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

func TestLongDiffIsBounded(t *testing.T) {
	var old, new strings.Builder
	for i := range 3 * maxEdits {
		fmt.Fprintf(&old, "%d\n", i)
		fmt.Fprintf(&new, "%d\n", -i-1)
	}
	patch := unified("/a", "/a", old.String(), new.String())
	require.Equal(t, 3+6*maxEdits, strings.Count(patch, "\n"))
}
