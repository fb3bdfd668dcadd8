package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clause A20.
func TestOrderOfRoots(t *testing.T) {
	app, shared, skills := example(t)
	for _, roots := range [][]string{{app, shared, skills}, {skills, app, shared}} {
		a := open(t, limits{}, roots...).ask("retry")
		require.Equal(t, "end_turn", a.stop)
		var order []string
		for _, line := range a.lines() {
			label, _, _ := strings.Cut(line, "/")
			if len(order) == 0 || order[len(order)-1] != label {
				order = append(order, label)
			}
		}
		require.Equal(t, []string{filepath.Base(roots[0]), filepath.Base(roots[1]),
			filepath.Base(roots[2])}, order)
	}
}

// Clause A30.
func TestAllRootsAreSearched(t *testing.T) {
	app, shared, skills := example(t)
	a := open(t, limits{}, app, shared, skills).ask("/find AGENTS.md")
	require.Equal(t, []string{"app/AGENTS.md", "skills/AGENTS.md"}, a.lines())
	a = open(t, limits{}, shared, app).ask("/search FIXME")
	require.Contains(t, a.text(), "`shared`: 1 line in 1 file; `app`: 2 lines in 2 files.")
}

func TestIgnoredFiles(t *testing.T) {
	app, shared, _ := example(t)
	for path, content := range map[string]string{
		"bin/orders":            "needle",
		"web/dist/bundle.js":    "needle",
		"web/node_modules/x.js": "needle",
		".env":                  "needle",
		".env.example":          "needle",
		"docs/.gitignore":       "*.txt\n!keep.txt\n",
		"docs/notes.txt":        "needle",
		"docs/keep.txt":         "needle",
		"docs/deep/notes.txt":   "needle",
		"private/plan.md":       "needle",
		".git/info/exclude":     "/private/\n",
		".git/config":           "needle",
		"vendored/.git":         "gitdir: needle",
	} {
		path = filepath.Join(app, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(shared, "notes.txt"), []byte("needle\n"), 0o600))
	c := open(t, limits{}, app, shared)

	want := []string{"app/.env.example:1: needle", "app/docs/keep.txt:1: needle",
		"shared/notes.txt:1: needle"}
	require.Equal(t, want, c.ask("needle").lines())
	require.Equal(t, want, c.ask("/search needle").lines())
	require.Equal(t, []string{"app/docs/keep.txt", "shared/notes.txt"},
		c.ask("/find *.txt").lines())
	require.Equal(t, []string{"needle"}, c.ask("/read bin/orders").lines(), "what is named is read")
}

func TestBinaryFiles(t *testing.T) {
	cwd := plant(t, fileTree{
		"nul":     "needle\x00",
		"latin1":  "needle \xe9\n",
		"far nul": strings.Repeat("x", 9000) + "\nneedle\x00\n",
		"text":    "needle é\n",
	})
	c := open(t, limits{}, cwd)
	a := c.ask("/search needle")
	require.Len(t, a.lines(), 3, "Latin-1 is text")
	require.Contains(t, a.text(), "Left out: 1 binary file.")
	require.Len(t, c.ask("/find *").lines(), 4)
	require.Contains(t, c.ask("/read nul").text(), "is not a text file")
	require.Contains(t, c.ask("/read latin1").text(), "needle é")
}

func TestSymbolicLinks(t *testing.T) {
	outside := plant(t, fileTree{"secret.txt": "needle\n"})
	cwd := plant(t, fileTree{"real/a.txt": "needle\n"})
	symlink(t, outside, cwd, "out")
	symlink(t, filepath.Join(outside, "secret.txt"), cwd, "out.txt")
	symlink(t, "real", cwd, "again")
	symlink(t, filepath.Join("real", "a.txt"), cwd, "again.txt")
	symlink(t, ".", cwd, "loop")
	c := open(t, limits{}, cwd)
	require.Len(t, c.ask("needle").lines(), 1)
	require.Len(t, c.ask("/find *.txt").lines(), 1)
}

func TestOverlappingRoots(t *testing.T) {
	top := plant(t, fileTree{
		"src/.gitignore": "gen/\n",
		"src/a.txt":      "needle\n",
		"src/lib/b.txt":  "needle\n",
		"src/gen/c.txt":  "needle\n",
	})
	src, lib, gen := filepath.Join(top, "src"), filepath.Join(top, "src", "lib"),
		filepath.Join(top, "src", "gen")
	t.Run("the outer first", func(t *testing.T) {
		a := open(t, limits{}, src, lib).ask("needle")
		require.Equal(t, []string{"src/a.txt:1: needle", "src/lib/b.txt:1: needle"}, a.lines())
	})
	t.Run("the inner first", func(t *testing.T) {
		a := open(t, limits{}, lib, src).ask("needle")
		require.Equal(t, []string{"lib/b.txt:1: needle", "src/a.txt:1: needle"}, a.lines())
	})
	t.Run("the outer ignores the inner", func(t *testing.T) {
		a := open(t, limits{}, src, gen).ask("needle")
		require.Equal(t, []string{"src/a.txt:1: needle", "src/lib/b.txt:1: needle",
			"gen/c.txt:1: needle"}, a.lines())
	})
	t.Run("two spellings of one", func(t *testing.T) {
		symlink(t, lib, top, "other")
		a := open(t, limits{}, lib, filepath.Join(top, "other")).ask("needle")
		require.Equal(t, []string{"lib/b.txt:1: needle"}, a.lines())
	})
}

func TestLocations(t *testing.T) {
	top := plant(t, fileTree{"real/sub/a.txt": "x\nneedle\n"})
	symlink(t, filepath.Join(top, "real"), top, "spelled")
	spelled := filepath.Join(top, "spelled")
	want := filepath.Join(spelled, "sub", "a.txt")
	c := open(t, limits{}, spelled)

	require.Equal(t, []location{{want, 2}}, c.ask("needle").call(t).Places)
	require.Equal(t, []location{{want, 2}}, c.ask("/search needle").call(t).Places)
	require.Equal(t, []location{{want, 0}}, c.ask("/find a.txt").call(t).Places)
	require.Equal(t, []location{{want, 2}}, c.ask("/read sub/a.txt:2").call(t).Places)
}

// Nothing is said to be absent from a root that was not searched completely.
func TestIncompleteSearch(t *testing.T) {
	large := plant(t, fileTree{"1": "x\n", "2": "x\n", "3": "needle\n"})
	small := plant(t, fileTree{"a": "needle\nneedle\n"})
	l, s := "`"+filepath.Base(large)+"`", "`"+filepath.Base(small)+"`"
	t.Run("every root has its own limit of files", func(t *testing.T) {
		a := open(t, limits{files: 2}, large, small).ask("/search needle")
		require.Contains(t, a.text(), l+": none among the first 2 files; "+s+": 2 lines in 1 file.")
		a = open(t, limits{files: 2}, large, small).ask("/find 3")
		require.Contains(t, a.text(), l+": none among the first 2 files; "+s+": none.")
		require.NotContains(t, a.text(), "No files found")
	})
	t.Run("roots behind a full answer", func(t *testing.T) {
		a := open(t, limits{hits: 1}, small, large).ask("/search needle")
		require.Contains(t, a.text(), s+": 1 line in 1 file; "+l+": not searched.")
		a = open(t, limits{hits: 2}, small, large).ask("/search needle")
		require.Contains(t, a.text(), s+": 2 lines in 1 file; "+l+": not shown.")
	})
	t.Run("files that are too large", func(t *testing.T) {
		long := plant(t, fileTree{"long": strings.Repeat("x", 100_000), "short": "y\n"})
		a := open(t, limits{fileSize: 3}, long).ask("/search x")
		require.Contains(t, a.text(),
			": none in what was searched. Left out: 1 file over 3 bytes.")
	})
}

func TestSearchReportsProgress(t *testing.T) {
	cwd, other := plant(t, fileTree{"a/1": "x\n", "b/2": "x\n"}),
		plant(t, fileTree{"c/3": "needle\n"})
	a := open(t, limits{progress: -1}, cwd, other).ask("/search needle")
	var reports []string
	for _, u := range a.updates {
		if u.Kind == "tool_call_update" && u.Status == "" {
			reports = append(reports, u.text())
		}
	}
	require.Contains(t, reports, "Looked at 2 files so far, now in `"+filepath.Base(cwd)+"`.")
	require.Contains(t, reports, "Looked at 3 files so far, now in `"+filepath.Base(other)+"`.")
	require.Contains(t, a.updates[len(a.updates)-2].text(), "1 line in 1 file",
		"the last one has the result")
}

func TestSystemDirectoriesAreLeftOut(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("no /proc here")
	}
	a := open(t, limits{files: 1}, "/proc/self/task", "/").ask("/find no such file")
	require.Contains(t, a.text(), "`/`: none among the first 1 file")
	require.Regexp(t, "Left out: .*`/dev`, `/proc`", a.text())
}

func TestMaxDepth(t *testing.T) {
	deep := strings.Repeat("d/", 100)
	cwd := plant(t, fileTree{deep + "a.txt": "needle\n", deep + "d/b.txt": "needle\n"})
	a := open(t, limits{}, cwd).ask("needle")
	require.Len(t, a.lines(), 1)
	require.Contains(t, a.text(), "more than 100 directories deep")
}

func symlink(t testing.TB, target, directory, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(directory, name)); err != nil {
		t.Skip("no links here:", err)
	}
}
