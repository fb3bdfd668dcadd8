package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	cwd := plant(t, fileTree{
		"a.txt":     "one\ntwo\nthree\nfour\n",
		"name:3":    "three\n",
		"code.md":   "````\n```\nx\n",
		"latin.txt": "caf\xe9\n",
		"sub/b.txt": "b\n",
	})
	c := open(t, cwd)
	label := c.session.(*explorerSession).roots[0].Label
	for _, test := range []struct {
		argument string
		lines    []string
		says     string
	}{
		{"a.txt", []string{"one", "two", "three", "four"}, label + "/a.txt, lines 1 to 4 of 4"},
		{"./sub/../a.txt:2-3", []string{"two", "three"}, "a.txt, lines 2 to 3"},
		{"a.txt:3-", []string{"three", "four"}, "lines 3 to 4 of 4"},
		{"a.txt:2", []string{"two"}, "lines 2 to 2"},
		{"a.txt:9", []string{}, "has only 4 lines"},
		{"name:3", []string{"three"}, "name:3, lines 1 to 1"},
		{"latin.txt", []string{"café"}, "stored as Windows-1252"},
		{filepath.Join(cwd, "a.txt") + ":1", []string{"one"}, label + "/a.txt, lines 1"},
	} {
		t.Run(test.argument, func(t *testing.T) {
			a := c.ask("/read " + test.argument)
			require.Equal(t, "end_turn", a.stop)
			require.Contains(t, a.lines()[0], test.says)
			require.Equal(t, test.lines, a.lines()[1:len(test.lines)+1])
			call := a.call(t)
			require.Equal(t, sdk.ToolKindRead, call.Tool)
			require.Equal(t, sdk.ToolCallStatusCompleted, call.Status)
			require.NotEmpty(t, call.Places)
		})
	}
	require.Contains(t, c.ask("/read code.md").text(), "\n````\n```\nx\n`````\n",
		"nothing in a file closes its block")
	require.Contains(t, c.ask("/read sub").text(), "is a directory")
}

// Clause A20.
func TestRelativePaths(t *testing.T) {
	app, shared, skills := example(t)
	c := open(t, app, shared, skills)
	require.Contains(t, c.ask("/read README.md").text(), "# Orders", "of all the roots' it is cwd's")
	require.Contains(t, c.ask("/read ../shared/README.md").text(), "# Shared")
	a := c.ask("/read shared/retry/retry.go")
	require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
	require.Contains(t, a.text(), "did you mean "+filepath.Join(shared, "retry", "retry.go"))
}

// Clause A23.
func TestPathsOutsideTheRoots(t *testing.T) {
	outside := plant(t, fileTree{"secret": "hidden\n"})
	cwd, other := plant(t, fileTree{"a/b": "b\n"}), plant(t, fileTree{"c": "sibling\n"})
	symlink(t, filepath.Join(outside, "secret"), cwd, "file")
	symlink(t, outside, cwd, "dir")
	symlink(t, filepath.Join(other, "c"), cwd, "good")
	c := open(t, cwd, other)
	for _, path := range []string{"file", "dir/secret", "a/../dir/secret",
		filepath.Join(outside, "secret"), "../" + filepath.Base(outside) + "/secret"} {
		a := c.ask("/read " + path)
		require.Equal(t, "end_turn", a.stop)
		require.NotContains(t, a.text(), "hidden")
		require.Contains(t, a.text(), "outside the session's folders", path)
		require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
		require.Empty(t, a.call(t).Places)
	}
	require.Contains(t, c.ask("/read good").lines(), "sibling", "a link from one root into another")
}

func TestReplacedFolder(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "old\n"})
	c := open(t, cwd)
	require.NoError(t, os.RemoveAll(cwd))
	fileTree{"a.txt": "new\n"}.PlantIn(t, cwd)
	require.Contains(t, c.ask("/read a.txt").text(), "was replaced after the session started")
}

// Clauses A20 and A30.
func TestAllRootsAreSearchedInOrder(t *testing.T) {
	app, shared, skills := example(t)
	for _, roots := range [][]string{{app, shared, skills}, {skills, app, shared}} {
		c := open(t, roots...)
		for _, question := range []string{"retry", "/search (?i)retry", "/find *.md"} {
			a := c.ask(question)
			require.Equal(t, "end_turn", a.stop)
			require.Equal(t, sdk.ToolKindSearch, a.call(t).Tool)
			at := -1
			for _, root := range roots {
				next := strings.Index(a.text(), filepath.Base(root)+"/")
				if question == "/find *.md" {
					next = strings.Index(a.text(), "in folder "+root+":")
				}
				require.Greater(t, next, at, "%s: %s", question, a.text())
				at = next
			}
		}
	}
}

func TestWords(t *testing.T) {
	c := open(t, plant(t, fileTree{
		"a.txt": "The Payment is retried (later).\nA payment fails.\nÉTÉ\nneedle \x1b[31m\n"}))
	for text, want := range map[string]string{
		"payment RETR": "1:The Payment is retried (later).", "payment (later)": "1:The Payment",
		"été": "3:ÉTÉ", "needle": "4:needle \uFFFD[31m",
	} {
		a := c.ask(text)
		require.Contains(t, strings.Join(a.lines(), "\n"), want)
		require.Contains(t, a.text(), "1 matching line in 1 file")
	}
	require.Equal(t, "No line matches; 1 file visited.\n\n", c.ask("fails payment").text())
	require.Contains(t, c.ask("\u202f").text(), "You can use these commands")
}

func TestLocations(t *testing.T) {
	top := plant(t, fileTree{"real/sub/a.txt": "x\nneedle\n"})
	symlink(t, filepath.Join(top, "real"), top, "spelled")
	spelled := filepath.Join(top, "spelled")
	want := filepath.Join(spelled, "sub", "a.txt")
	c := open(t, spelled)
	for question, line := range map[string]int{
		"needle": 2, "/search needle": 2, "/find a.txt": 0, "/read sub/a.txt:2": 2,
	} {
		require.Equal(t, []location{{want, line}}, c.ask(question).call(t).Places, question)
	}
}

func TestRejectedPatterns(t *testing.T) {
	c := open(t, plant(t, nil))
	for question, why := range map[string]string{"/search (": "missing closing )", "/find [": "glob"} {
		a := c.ask(question)
		require.Contains(t, a.text(), why)
		require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
	}
}

func symlink(t testing.TB, target, directory, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(directory, name)); err != nil {
		t.Skip("no links here:", err)
	}
}
