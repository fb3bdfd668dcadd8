package gitignore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// judge walks from the top to path, whose last character tells a directory by a slash. files
// are the .gitignore files by their directory, "" for the top.
func judge(path string, files map[string]string, exclude string) Verdict {
	path, isDirectory := strings.CutSuffix(path, "/")
	kind := File
	if isDirectory {
		kind = Directory
	}
	m := NewMatcher(Parse([]byte(files[""])), Parse([]byte(exclude)))
	parts := strings.Split(path, "/")
	for i, name := range parts[:len(parts)-1] {
		var rules *Rules
		if text, ok := files[strings.Join(parts[:i+1], "/")]; ok {
			rules = Parse([]byte(text))
		}
		m = m.Enter(name, rules)
	}
	return m.Match(parts[len(parts)-1], kind)
}

func TestOneFile(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		ignored     []string
		kept        []string
	}{
		{"a name at any depth", "out", []string{"out", "a/out", "out/", "a/out/x"}, []string{"outs", "a/outs"}},
		{"a comment and an empty line", "#out\n\nx", []string{"x"}, []string{"#out", "out"}},
		{"a quoted number sign", `\#out`, []string{"#out"}, []string{"out"}},
		{"a quoted exclamation mark", `\!out`, []string{"!out"}, []string{"out"}},
		{"a leading slash", "/out", []string{"out"}, []string{"a/out"}},
		{"a slash inside", "a/out", []string{"a/out"}, []string{"out", "b/a/out"}},
		{"a slash at the end", "out/", []string{"out/", "a/out/", "out/x"}, []string{"out"}},
		{"a suffix", "*.o", []string{"x.o", ".o", "a/x.o"}, []string{"x.oo", "x.c"}},
		{"a prefix", "tmp*", []string{"tmp", "tmp1", "a/tmpx"}, []string{"xtmp"}},
		{"a star inside a path", "/a/*/c", []string{"a/b/c"}, []string{"a/c", "a/b/b/c"}},
		{"a star does not cross a slash", "/*.o", []string{"x.o"}, []string{"a/x.o"}},
		{"one character", "a?c", []string{"abc"}, []string{"ac", "abbc"}},
		{"a set", "[a-c]x", []string{"ax", "cx"}, []string{"dx", "x"}},
		{"a range ends", "[a-c-e]x", []string{"bx", "-x", "ex"}, []string{"dx"}},
		{"a range with quotes", `[\a-\c]x`, []string{"bx"}, []string{`\x`}},
		{"a quoted slash behind stars", `a/**\/b`, []string{"a/x/b"}, []string{"a/b", "ab"}},
		{"a negated set", "[!a-c]x", []string{"dx"}, []string{"ax"}},
		{"a bracket in a set", "[]a]x", []string{"]x", "ax"}, []string{"bx"}},
		{"a class", "[[:digit:]]x", []string{"1x"}, []string{"ax"}},
		{"an unknown class", "[[:nope:]]x", nil, []string{"nx", "[[:nope:]]x"}},
		{"an open set", "[ax", nil, []string{"[ax", "ax"}},
		{"stars at the beginning", "**/a/b", []string{"a/b", "x/a/b", "x/y/a/b"}, []string{"a/x/b"}},
		{"stars at the end", "a/**", []string{"a/x", "a/x/y"}, []string{"a/", "a"}},
		{"stars in the middle", "a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/x/c"}},
		{"stars without slashes", "?a**/b", []string{"xa/b", "xay/b"}, []string{"xab", "xa/y/b"}},
		{"stars behind a literal", "/lib**/b", []string{"lib/b", "libx/y/b", "libb"}, []string{"xlib/b"}},
		{"spaces at the end", "out  \nx\\ \n", []string{"out", "x "}, []string{"out  ", "x"}},
		{"a carriage return", "out\r\nx\r", []string{"out", "x"}, []string{"out\r"}},
		{"a byte order mark", "\ufeffout", []string{"out"}, nil},
		{"a NUL", "out\x00x", []string{"out"}, []string{"outx"}},
		{"a backslash at the end", `out\`, nil, []string{"out", `out\`}},
		{"nothing but signs", "!\n/\n//\n!/\n\\", nil, []string{"a", "a/"}},
		{"the last rule decides", "*.o\n!x.o\nx.*\n", []string{"x.o", "y.o"}, nil},
		{"the last rule decides among names", "x\n!x\n", nil, []string{"x"}},
		{"the last rule decides, for directories only or not", "!x/\nx\n", []string{"x", "x/"}, nil},
		{"the last rule decides, glob or not", "x*\n!xy\n", []string{"xx"}, []string{"xy"}},
		{"a rule for directories is none for a file", "x\n!x/\n", []string{"x"}, []string{"x/"}},
		{"no return from an ignored directory", "out/\n!out/keep\n", []string{"out/keep"}, nil},
		{"return from an ignored content", "out/*\n!out/keep\n", []string{"out/x"}, []string{"out/keep"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"": c.rules}
			for _, path := range c.ignored {
				require.Equal(t, Ignored, judge(path, files, ""), "%q", path)
			}
			for _, path := range c.kept {
				require.NotEqual(t, Ignored, judge(path, files, ""), "%q", path)
			}
		})
	}
}

func TestDeeperFilesGoFirst(t *testing.T) {
	files := map[string]string{
		"":    "*.log\n/b/out\n",
		"a":   "!*.log\n/out\n",
		"a/b": "x.log\n",
	}
	require.Equal(t, Ignored, judge("x.log", files, ""))
	require.Equal(t, Included, judge("a/x.log", files, ""))
	require.Equal(t, Ignored, judge("a/b/x.log", files, ""))
	require.Equal(t, Included, judge("a/b/y.log", files, ""))
	require.Equal(t, Ignored, judge("a/out", files, ""))
	require.Equal(t, Undecided, judge("a/b/out", files, ""))
	require.Equal(t, Ignored, judge("b/out", files, ""))
}

func TestExcludeWeighsLeast(t *testing.T) {
	files := map[string]string{"": "!x\n"}
	require.Equal(t, Included, judge("x", files, "x\n/a/y\n"))
	require.Equal(t, Ignored, judge("a/y", files, "x\n/a/y\n"))
}

func TestAnIgnoredDirectoryReadsNoRules(t *testing.T) {
	files := map[string]string{"": "out/\n", "out": "!*\n"}
	require.Equal(t, Ignored, judge("out/x", files, ""))
	require.Equal(t, Ignored, judge("out/a/x", files, ""))
}

func TestNilRules(t *testing.T) {
	m := NewMatcher(nil).Enter("a", nil)
	require.Equal(t, Undecided, m.Match("b", File))
	require.Equal(t, "undecided included ignored", Undecided.String()+" "+Included.String()+" "+Ignored.String())
}
