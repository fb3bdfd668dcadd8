package explore

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	cwd := plant(t, fileTree{
		"a.txt":     "one\ntwo\nthree\nfour\n",
		"no end":    "one\ntwo",
		"empty":     "",
		"name:3":    "three\n",
		"code.md":   "````\n```\nx\n",
		"sub/b.txt": "b\n",
	})
	c := open(t, limits{}, cwd)
	label := c.session.(*explorerSession).roots[0].Label
	for _, test := range []struct {
		argument string
		lines    []string
		says     string
	}{
		{"a.txt", []string{"one", "two", "three", "four"}, "a.txt`, 4 lines."},
		{"./sub/../a.txt:2-3", []string{"two", "three"}, "a.txt`, lines 2 to 3."},
		{"a.txt:3-", []string{"three", "four"}, "lines 3 to 4 of 4."},
		{"a.txt:2", []string{"two"}, "line 2."},
		{"a.txt:4-900", []string{"four"}, "line 4 of 4."},
		{"a.txt:9", nil, "has only 4 lines."},
		{"no end", []string{"one", "two"}, "no end`, 2 lines."},
		{"empty", nil, "is empty."},
		{"name:3", []string{"three"}, "name:3`, 1 line."},
		{filepath.Join(cwd, "a.txt") + ":1", []string{"one"}, label + "/a.txt`, line 1."},
	} {
		t.Run(test.argument, func(t *testing.T) {
			a := c.ask("/read " + test.argument)
			require.Equal(t, "end_turn", a.stop)
			require.Equal(t, test.lines, a.lines())
			require.Contains(t, a.text(), test.says)
			call := a.call(t)
			require.Equal(t, sdk.ToolKindRead, call.Tool)
			require.Equal(t, sdk.ToolCallStatusCompleted, call.Status)
			require.Contains(t, call.text(), test.says)
		})
	}
	require.Contains(t, c.ask("/read code.md").text(), "`````text\n````\n```\nx\n`````\n",
		"nothing in a file closes its block")
}

// Clause A20.
func TestRelativePaths(t *testing.T) {
	app, shared, skills := example(t)
	c := open(t, limits{}, app, shared, skills)

	require.Contains(t, c.ask("/read README.md").text(), "# Orders",
		"of all the roots' it is cwd's")
	require.Contains(t, c.ask("/read ../shared/README.md").text(), "# Shared")
	for _, path := range []string{"retry/retry.go", "shared/retry/retry.go"} {
		a := c.ask("/read " + path)
		require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
		require.Empty(t, a.lines())
		require.Contains(t, a.text(), "There is no file")
		require.Contains(t, a.text(),
			"Did you mean `/read "+filepath.Join(shared, "retry", "retry.go")+"`?")
	}
}

// What finds nothing says what may have been meant.
func TestHintsAboutNames(t *testing.T) {
	dir := plant(t, fileTree{"a\u202fb.txt": "x\n", "[id]/page.tsx": "y\n"})
	c := open(t, limits{}, dir)
	alike := "There is `" + filepath.Join(dir, "a\u202fb.txt") + "`, whose name looks like it."
	require.Contains(t, c.ask("/read a b.txt").text(), alike)
	require.Contains(t, c.ask("/find [id]/*.tsx").text(), `write \[id\] for a name with brackets`)
	require.NotContains(t, c.ask(`/find \[id\]/*.tsx`).text(), "brackets")
	require.NotContains(t, c.ask("/read c.txt").text(), "looks like")
}

// Clause A23.
func TestPathsOutsideTheRoots(t *testing.T) {
	outside := plant(t, fileTree{"secret": "hidden\n"})
	cwd, other := plant(t, fileTree{"a/b": "b\n"}), plant(t, fileTree{"c": "sibling\n"})
	symlink(t, filepath.Join(outside, "secret"), cwd, "file")
	symlink(t, outside, cwd, "dir")
	symlink(t, filepath.Join(other, "c"), cwd, "good")
	c := open(t, limits{}, cwd, other)

	secret := filepath.Join(outside, "secret")
	for _, path := range []string{"file", "dir/secret", "a/../dir/secret", secret, "../" +
		filepath.Base(outside) + "/secret"} {
		a := c.ask("/read " + path)
		require.Equal(t, "end_turn", a.stop)
		require.NotContains(t, a.text(), "hidden")
		require.Contains(t, a.text(), "is outside the session's folders: ", path)
		require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
		require.Empty(t, a.call(t).Places)
	}
	require.Equal(t, []string{"sibling"}, c.ask("/read good").lines(),
		"a link from one root into another")
}

func TestReadDirectory(t *testing.T) {
	a := open(t, limits{}, plant(t, fileTree{"a/b": "b\n"})).ask("/read a")
	require.Contains(t, a.text(), "`a` is a directory")
}

func TestReadLongFile(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("line " + strconv.Itoa(i+1) + "\n")
	}
	cwd := plant(t,
		fileTree{"long.txt": b.String(), "wide.txt": strings.Repeat("é", 4000) + "\nshort\n"})
	c := open(t, limits{bytes: 1000}, cwd)

	var got []string
	for ask := "/read long.txt:4800-"; ask != ""; {
		a := c.ask(ask)
		got = append(got, a.lines()...)
		_, ask, _ = strings.Cut(a.text(), "Continue with `")
		ask, _, _ = strings.Cut(ask, "`")
		if ask != "" {
			require.Contains(t, a.text(), "Truncated: an answer is limited to 1000 bytes.")
		}
	}
	require.Len(t, got, 201)
	require.Equal(t, "line 4800", got[0])
	require.Equal(t, "line 5000", got[200])

	a := c.ask("/read wide.txt")
	require.Equal(t, []string{strings.Repeat("é", 500)}, a.lines())
	require.Contains(t, a.text(), "wide.txt:2-`")
}

func TestReadSeveralLinks(t *testing.T) {
	cwd := plant(t, fileTree{"a": strings.Repeat("a", 90) + "\n", "b": strings.Repeat("b", 90) +
		"\n", "c": "c\n"})
	uri := dir(t, cwd).URI()
	a := open(t, limits{bytes: 91}, cwd).ask("", uri+"/a", uri+"/b", uri+"/c")
	require.Equal(t, []string{strings.Repeat("a", 90)}, a.lines())
	require.Equal(t, 2, strings.Count(a.text(), "is not shown."))
}

func TestReplacedFolder(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "old\n"})
	c := open(t, limits{}, cwd)
	require.NoError(t, os.RemoveAll(cwd))
	require.NoError(t, os.Mkdir(cwd, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "a.txt"), []byte("new\n"), 0o600))
	require.Contains(t, c.ask("/read a.txt").text(),
		"was replaced after the session started. Load the session again.")
}

// A file that /search understands can be read.
//
// Clause B3.
func TestReadTextThatIsNotUTF8(t *testing.T) {
	cwd := plant(t, fileTree{"latin.txt": "caf\xe9\nsecond line\n", "le.txt": "\xff\xfea\x00\n\x00\xe9\x00",
		"be.txt": "\xfe\xff\x00a\x00\n\x00\xe9", "binary": "\x00\xff\x01\xfe", "utf-8.txt": "caf\u00e9\n"})
	c := open(t, limits{}, cwd)
	for ask, want := range map[string][]string{
		"latin.txt":     {"caf\u00e9\nsecond line\n", "2 lines. It is Windows-1252 text."},
		"latin.txt:2-2": {"second line\n", "It is Windows-1252 text."},
		"le.txt":        {"a\n\u00e9", "It is UTF-16LE text."},
		"be.txt":        {"a\n\u00e9", "It is UTF-16BE text."},
		"binary":        {"binary` is not a text file."},
		"utf-8.txt":     {"caf\u00e9\n", "1 line.\n"},
	} {
		for _, part := range want {
			require.Contains(t, c.ask("/read "+ask).text(), part, ask)
		}
	}
}
