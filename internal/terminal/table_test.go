package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out, "NAME", "WHERE", "WHEN")
	table.Row("one", "/a/long/path/of/many/folders/in/folders", "yesterday")
	table.Row("日本", "-", "now")
	require.NoError(t, table.Print())
	require.Equal(t, "NAME  WHERE                                    WHEN\n"+
		"one   /a/long/path/of/many/folders/in/folders  yesterday\n"+
		"日本  -                                        now\n", out.String())
	require.Equal(t, []int{4, 39, 9}, table.widths(80))
	require.Equal(t, []int{4, 16, 9}, table.widths(34))
	require.Equal(t, []int{4, 23}, table.widths(30), "a column is left out")
	require.Equal(t, []int{4, 13}, table.widths(20))
	require.Equal(t, []string{"/a/long/path/", "of/many/", "folders/in/", "folders"},
		wrapped("/a/long/path/of/many/folders/in/folders", 13))
}

func TestFlow(t *testing.T) {
	const long = "one two three\nfour five\n\n  key  a value of\n       more words\n  {\"a\": \"b c d e f g h\"}\n"
	require.Equal(t, long, Flow(long, 40))
	require.Equal(t, "one two\nthree\nfour\nfive\n\n  key  a\n       value\n       of\n       more\n       words\n"+
		"  {\"a\": \"b c d e f g h\"}\n", Flow(long, 9))
}

func TestCompleteFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"app", "shared/one", "shared/other", "src", ".hidden"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apple"), nil, 0o600))
	for typed, want := range map[string]string{
		"a": "app/", "s": "s", "sh": "shared/", "shared/": "shared/o", "shared/on": "shared/one/", "x": "x",
		"no/thing": "no/thing", ".h": ".hidden/", dir + "/a": dir + "/app/", "app/../sr": "app/../src/",
	} {
		require.Equal(t, want, CompleteFolder(dir, typed), typed)
	}
}

// Every terminal has room for a table, if only for its first column.
func TestNarrowTable(t *testing.T) {
	table := NewTable(nil, "NAME", "AGENT", "FOUND", "COMMAND")
	table.Row("claude-code-acp", "Claude Code, older adapter", "/usr/local/bin/claude", "claude-code-acp")
	for width := 1; width < 120; width++ {
		used := -gap
		for _, column := range table.widths(width) {
			used += column + gap
		}
		require.Less(t, used, max(width, 11), width)
	}
}
