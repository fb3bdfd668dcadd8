package gitignore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzGlob compares the expressions with a matcher that tries everything, as git's does.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"*.o", "/a/**/b", "lib**/x", "[!a-c]?*", `\*\/**`, "a*b*c*d",
		"**/*x*/y", "***/a", "[[:alpha:]]", "[.-0]x", "**/[é]"} {
		f.Add(pattern, "a/b/c.o")
		f.Add(pattern, "lib/aabbccdd/x")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 40 || len(text) > 60 || strings.ContainsRune(pattern, 0) ||
			strings.Count(pattern, "*") > 5 {
			t.Skip("too long, or not a line of a file")
		}
		p, ok := compile(pattern)
		if !ok {
			t.Skip("not a pattern")
		}
		if p.scope == nameScope && strings.Contains(text, "/") {
			t.Skip("the pattern only matches names")
		}
		in := nameScope
		if strings.Contains(pattern, "/") {
			in, pattern = pathScope, strings.TrimPrefix(pattern, "/")
		}
		special := max(strings.IndexAny(pattern+`*`, `*?[\`), 0)
		rest, begins := strings.CutPrefix(text, pattern[:special])
		want := begins && wild(pattern[special:], 0, rest, in)
		left := maxSteps
		require.Equal(t, want, p.matches(text, &left), "%q %s", pattern, p.glob)
		require.Positive(t, left)
	})
}

// wild reports whether the rest of a pattern, from i, matches all of a text.
func wild(pattern string, i int, text string, in scope) bool {
	if i == len(pattern) {
		return text == ""
	}
	switch pattern[i] {
	case '*':
		element, size := stars(pattern, i, in)
		for n := 0; ; n++ {
			between := text[:n]
			ok := element == `.*` || element == anyName && !strings.Contains(between, "/") ||
				element == `(?:.*/)?` && (n == 0 || text[n-1] == '/')
			if ok && wild(pattern, i+size, text[n:], in) {
				return true
			}
			if n == len(text) {
				return false
			}
		}
	case '?':
		return text != "" && text[0] != '/' && wild(pattern, i+1, text[1:], in)
	case '[':
		set, size, ok := parseSet(pattern[i:])
		return ok && text != "" && text[0] != '/' &&
			regexp.MustCompile(`(?s)\A`+set+`\z`).MatchString(runes(text[:1])) &&
			wild(pattern, i+size, text[1:], in)
	case '\\':
		i++
	}
	return i < len(pattern) && text != "" && text[0] == pattern[i] && wild(pattern, i+1, text[1:], in)
}

// FuzzParse feeds any bytes as a file of rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*.o\n!x.o\n/out/\na/**/b\n[a-\n\\"), "a/x.o")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		m := NewMatcher(Parse(data))
		for name := range strings.SplitSeq(path, "/") {
			if m.Match(name, Directory) == Ignored {
				require.Equal(t, Ignored, m.Enter(name, nil).Match("x", File))
			}
			m = m.Enter(name, Parse(data))
		}
	})
}
