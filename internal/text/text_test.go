package text_test

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/text"
)

func TestTruncate(t *testing.T) {
	require.Equal(t, "abc", text.Truncate("abc", 3))
	require.Equal(t, "ab…", text.Truncate("abc", 2))
	require.Equal(t, "a…", text.Truncate("aé", 2))
	require.Equal(t, "…", text.Truncate("é", 1))
	require.Equal(t, "ab", text.Truncate("a\xffb", 2))
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "max")
		got := text.Truncate(s, most)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(strings.TrimSuffix(got, "…")), max(most, len(s)-len("…")))
	})
}

func TestShorten(t *testing.T) {
	require.Equal(t, "abcdefgh", text.Shorten("abcdefgh", 8))
	require.Equal(t, "abcdef…hi", text.Shorten("abcdefghi", 8))
	require.Equal(t, "abcde…i", text.Shorten("abcdeéhéi", 8))
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "max")
		got := text.Shorten(s, most)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), max(most+len("…"), 0))
	})
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"a b c":              "a b c",
		"a  b":               "a b",
		"a b ":               "a b",
		"a\x7fb":             "a b",
		" a\n\tb\u2028c\x00": "a b c",
		"0123456789":         "0123456789",
		"0123456789x":        "012345678…",
		"01234567 9x":        "01234567…",
		"a\u202eb\u200bc":    "a b c",
		"👩\u200d💻":           "👩\u200d💻",
	} {
		require.Equal(t, want, text.Line(in, 10))
	}
}

func TestCutWord(t *testing.T) {
	for in, want := range map[string][2]string{
		"":                 {"", ""},
		"add":              {"add", ""},
		"add \n a\u2003b ": {"add", "a\u2003b"},
		" add":             {"", "add"},
		"add\u3000dir":     {"add", "dir"},
	} {
		word, rest := text.CutWord(in)
		require.Equal(t, want, [2]string{word, rest}, in)
	}
}

func TestAttributed(t *testing.T) {
	require.Equal(t, "a", text.Attributed("a", " \n", 10))
	require.Equal(t, "a: b c", text.Attributed("a", "b\nc", 10))
	require.Equal(t, `"a\u202e": 123…`, text.Attributed("a\u202e", "12345", 4))
}

func TestPrintable(t *testing.T) {
	for _, same := range []string{"a b", "ünï/日本.go", "", `a\b"c`, "❤\ufe0f.txt", "a\u3000b"} {
		require.Equal(t, same, text.Printable(same))
	}
	for in, want := range map[string]string{
		"a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "a\u202eb": `"a\u202eb"`, "a\xff": `"a\xff"`, "a\u200bb": `"a\u200bb"`, "a\u2028": `"a\u2028"`,
		"a\u00adb": `"a\u00adb"`, "a\u2062b": `"a\u2062b"`, "a\U000e0041": `"a\U000e0041"`, "日本\u3164": `"日本\u3164"`, "a\U000e0101": `"a\U000e0101"`,
		"a\u2800": `"a\u2800"`, "a ": `"a "`, " a": `" a"`, "a\u3000": `"a\u3000"`,
	} {
		require.Equal(t, want, text.Printable(in))
	}
}

func TestMarkdown(t *testing.T) {
	require.Equal(t, "```go\na\n```\n", text.Block("go", "a"))
	require.Equal(t, "````\n```\n````\n", text.Block("", "```\n"))
	require.Equal(t, "`a`", text.Code("a"))
	require.Equal(t, "`` `a ``", text.Code("`a"))
	require.Equal(t, "`  `", text.Code(""))
	require.Equal(t, "a\ufffd[2Jb\n\tc\ufffdd", text.Plain("a\x1b[2Jb\r\n\tc\u202ed"))
}

func TestIsVisible(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "echo\t'a b'\n": true, "echo 👩\u200d💻 می\u200cخواهم ❤\ufe0f 世界\u3000です": true,
		"git\u00a0status": false, "./build\u200d.sh": false, "./build\ufe0f.sh": false, "\u3000": false, "a\u202eb": false, "é\u202e": false, "a\rb": false, "\xff": false,
	} {
		require.Equal(t, want, text.IsVisible(s), "%q", s)
	}
}

func TestEscapeJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": ["é","日本","👩‍💻"]}`:                         `{"a": ["é","日本","👩\u200d💻"]}`,
		"{\n\t\"a\":\"\u009b31m\u202e\x7f\u2028\u200b\"}": "{\n\t\"a\":\"\\u009b31m\\u202e\\u007f\\u2028\\u200b\"}",
		"\"\U000e0041\"": `"\udb40\udc41"`,
	} {
		require.Equal(t, want, string(text.EscapeJSON([]byte(in))))
		require.JSONEq(t, in, want)
	}
}

func TestCounts(t *testing.T) {
	require.Equal(t, "1 file", text.Count(1, "file", "files"))
	require.Equal(t, "0 files", text.Count(0, "file", "files"))
	require.Equal(t, "4 KiB", text.Size(4096))
	require.Equal(t, "2 MiB", text.Size(int64(2<<20)))
	require.Equal(t, "1 byte", text.Size(1))
}

func TestCutBlock(t *testing.T) {
	for in, want := range map[string][2]string{
		"```\na\n```":                {"a", ""},
		"\n \n~~~go\n\na\n\n~~~ \nb": {"\na\n", "b"},
		"````\n```\n```` x\n`````\n": {"```\n```` x", ""},
		"```\n```\n":                 {"", ""},
	} {
		content, rest, ok := text.CutBlock(in)
		require.True(t, ok, in)
		require.Equal(t, want, [2]string{content, rest}, in)
	}
	for _, in := range []string{"", "\n", "a", "``\na\n``", "```\na", "a\n```\n```\n", "``````"} {
		_, rest, ok := text.CutBlock(in)
		require.False(t, ok, in)
		require.Equal(t, in, rest)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("`~ \nab"))).Draw(t, "s")
		content, rest, ok := text.CutBlock(text.Block("x", s) + "after")
		require.True(t, ok)
		require.Equal(t, strings.TrimSuffix(s, "\n"), content)
		require.Equal(t, "after", rest)
	})
}

// A title or description can be megabytes long.
func TestLineOfLongText(t *testing.T) {
	for _, some := range []string{"a ", "é", "a\n", "\u202e"} {
		long := strings.Repeat(some, 1<<20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text.Line(long, 80)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000), "%q", some)
	}
}

// The number of combinations of several braces is the product of their alternatives.
func TestGlobChoices(t *testing.T) {
	for glob, n := range map[string]int{
		"a": 1, "{a}": 1, "{a,b}": 2, "{a,b}{c,d,e}": 6, "{a,{b,c},d{e,f}g}": 12, "{,a}": 2, "a,b": 1,
		`\{a,b}`: 1, `{a\,b,c}`: 2, "[{,}]{a,b}": 2, "{[,}],b}": 2, "{[]],b}": 2, `{[\],],b}`: 2, "}a,b": 1,
		"{[}a],b,c}": 3, `{[\]}],b}`: 2, `{\},b}`: 2, `\{a,b\}`: 1,
		strings.Repeat("{"+strings.Repeat("a,", 50)+"b}", 8): 51 * 51,
	} {
		require.Equal(t, n, text.GlobChoices(glob, 256), glob)
	}
}
