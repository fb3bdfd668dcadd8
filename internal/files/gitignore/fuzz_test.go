package gitignore

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzGlob compares the matcher with a regular expression of the same meaning.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"*.o", "/a/**/b", "lib**/x", "[!a-c]?*", `\*\/**`, "a*b*c*d",
		"**/*x*/y", "***/a", "[[:alpha:]]"} {
		f.Add(pattern, "a/b/c.o")
		f.Add(pattern, "lib/aabbccdd/x")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 200 || strings.ContainsRune(pattern, 0) {
			t.Skip("too long, or not a line of a file")
		}
		p, ok := compile(pattern)
		if !ok {
			t.Skip("not a pattern")
		}
		if p.scope == nameScope && strings.Contains(text, "/") {
			t.Skip("the pattern only matches names")
		}
		want, err := regexp.Compile(expression(p))
		require.NoError(t, err)
		left := maxSteps
		got := p.matchesText(text, &left)
		require.Equal(t, want.MatchString(runes(text)), got, "%s", want)
		name := strings.LastIndexByte(text, '/') + 1
		require.Equal(t, got, p.matches(text[:name], text[name:], &left), "in two parts")
	})
}

// expression is p as a regular expression over texts with one rune for each byte.
func expression(p pattern) string {
	var b strings.Builder
	literal := regexp.QuoteMeta(runes(p.text))
	switch p.form {
	case exact:
		return `\A` + literal + `\z`
	case prefix:
		return `\A` + literal
	case suffix:
		return literal + `\z`
	}
	b.WriteString(`(?s)\A` + literal)
	for _, t := range p.glob {
		switch t.op {
		case opLiteral:
			b.WriteString(regexp.QuoteMeta(runes(t.text)))
		case opOne:
			b.WriteString(`[^/]`)
		case opStar:
			b.WriteString(`[^/]*`)
		case opDeep:
			b.WriteString(`.*`)
		case opDirs:
			b.WriteString(`(?:.*/)?`)
		case opSet:
			b.WriteString(`(?:\x{fffff}`)
			for c := range 256 {
				if t.set.has(byte(c)) && c != '/' {
					fmt.Fprintf(&b, `|\x{%x}`, c)
				}
			}
			b.WriteString(`)`)
		}
	}
	b.WriteString(`\z`)
	return b.String()
}

func runes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
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
