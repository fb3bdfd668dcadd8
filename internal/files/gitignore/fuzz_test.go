package gitignore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzGlob compares the matcher with one that tries everything, as git's does.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"*.o", "/a/**/b", "lib**/x", "[!a-c]?*", `\*\/**`, "a*b*c*d",
		"**/*x*/y", "***/a", "[[:alpha:]]", "[.-0]x", "**/[é]"} {
		f.Add(pattern, "a/b/c.o")
		f.Add(pattern, "lib/aabbccdd/x")
		f.Add(pattern, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 40 || len(text) > 60 || strings.ContainsRune(pattern, 0) ||
			strings.Count(pattern, "*") > 5 {
			t.Skip("too long, or not a line of a file")
		}
		p := newPattern(pattern)
		if !p.ofPath && strings.Contains(text, "/") {
			t.Skip("the pattern only matches names")
		}
		rest, begins := strings.CutPrefix(text, p.begin)
		want := pattern != "" && begins && p.tryAll(p.glob, rest)
		left := maxSteps
		require.Equal(t, want, pattern != "" && p.matches(text, &left), "%q", pattern)
		require.Positive(t, left)
	})
}

// tryAll reports whether a rest of the glob matches all of a text.
func (p *pattern) tryAll(glob, text string) bool {
	if !strings.HasPrefix(glob, "*") {
		matched, size := matchOne(glob, text)
		return glob == "" && text == "" || matched && p.tryAll(glob[size:], text[1:])
	}
	found := p.asterisksAt(len(p.glob)-len(glob), text)
	for n := range len(text) + 1 {
		between := text[:n]
		ok := found.kind == anything || found.kind == withinName && !strings.Contains(between, "/") ||
			found.kind == directories && (n == 0 || text[n-1] == '/')
		if ok && p.tryAll(found.glob, text[n:]) {
			return true
		}
	}
	return false
}

// FuzzParse feeds any bytes as a file of rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*.o\n!x.o\n/out/\na/**/b\n[a-\n\\"), "a/x.o")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		m := NewMatcher(Parse(data))
		for name := range strings.SplitSeq(path, "/") {
			if m.Ignores(name, true) {
				require.True(t, m.Enter(name, nil).Ignores("x", false))
			}
			m = m.Enter(name, Parse(data))
		}
	})
}
