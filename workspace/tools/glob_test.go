package tools

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct{ glob, yes, no string }{
		{"*.go", "a.go b/c.go b/d/.go", "a.goo go b.go/c"},
		{"**/*.go", "a.go b/c.go", "a.goo"},
		{"./*.go", "a.go", "go b/c.go"},
		{"./**/*.go", "a.go b/c.go", "go"},
		{"./a", "a", "b/a"},
		{"a/**", "a/b a/b/c", "a b/a/c"},
		{"**/{a,b}*/**", "a/x x/ab/y/z b/.x", "a x/a x/ab abc"},
		{"{a/**,b}", "a/x b", "a"},
		{"a/*.go", "a/b.go", "b.go a/b/c.go x/a/b.go"},
		{"a/**/*.go", "a/b.go a/b/c.go", "b.go"},
		{"**", "a a/b", ""},
		{"*", "a a/b", ""},
		{"main.go", "main.go a/main.go", "amain.go"},
		{"{a,b}/*.[ch]", "a/x.c b/y.h", "c/x.c a/x.o"},
		{"**/test/**", "test/a x/test/y/z", "testing/a"},
		{`\*.go`, "*.go a/*.go", "a.go"},
	} {
		g, err := newGlob(c.glob)
		require.NoError(t, err)
		for p := range strings.FieldsSeq(c.yes) {
			require.True(t, g.match(split(p)), "%s %s", c.glob, p)
		}
		for p := range strings.FieldsSeq(c.no) {
			require.False(t, g.match(split(p)), "%s %s", c.glob, p)
		}
	}
}

// split returns the directory of a path, "" for the top, and its last name.
func split(p string) (dir, name string) {
	dir, name = path.Split(p)
	return strings.TrimSuffix(dir, "/"), name
}

func TestInvalidGlobs(t *testing.T) {
	for glob, why := range map[string]string{
		"": "empty", "/src/*.go": "begins with a slash", "src/": "ends with a slash", "[a": "not closed", `a\`: "backslash", strings.Repeat("{a,b}", 9): "8 braces", strings.Repeat("**/a/", 9): `8 "**"`,
		strings.Repeat("{a,b,c}", 6): "256 combinations", "{" + strings.Repeat("{a,b},", 100) +
			"c}": "8 braces", strings.Repeat("a", 2000): "1024 bytes",
	} {
		_, err := newGlob(glob)
		require.ErrorContains(t, err, "invalid glob", glob)
		require.ErrorContains(t, err, why)
	}
}

// All 256 combinations of braces are tried.
func TestGlobWithBraces(t *testing.T) {
	g, err := newGlob("{a,b,c,d}{a,b,c,d}{a,b,c,d}{a,b,c,d}")
	require.NoError(t, err)
	require.True(t, g.match("", "dcba"))
}
