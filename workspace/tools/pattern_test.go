package tools

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The quick ways of pattern.find give what line by line gives.
func TestPatternFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune("abékKſsS \r"))).Filter(
			func(s string) bool {
				return !strings.HasSuffix(s, "\r")
			})).Draw(t, "lines")
		ending := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending")
		expression := rapid.SampledFrom([]string{
			"ab", "a.*b", "^a", "b$", "^$", "é+", "[^a]", "(?i)AB", "abba", `a\r`, "a$|^b", "[^b]ab", "(a+b)+", "(?:ab){2}", "(ab)?b", "(ab)*é",
			"(?:a b){0,2}b", "b (?i)A", "(?i)a.*s", "(?i)b+ks.*(ab|é)", "(?i)sab", "(?i)k.*k", "(?i)ab.*a", "a|é", "ab|éb|sS", "(?i)ks", "(?i)abs", "(?i)aé|s", "(ab|ba)+k", "k(?:a|b|s|é)",
			`a{2}b+a`, `(?:ab)+a`, `\bab\b.a`, "a{0}b", "(a)(b)", "b(?:a{1,2})s", "(?:k*)ab", "a?b?k", "(?:)a", "(?i:a)b",
		}).Draw(t, "expression")
		c := rapid.Bool().Draw(t, "ignore case")
		s := rapid.Bool().Draw(t, "literal")
		p, err := newPattern(expression, s, c)
		require.NoError(t, err)

		var want, got []int
		for i, line := range lines {
			if p.expression.MatchString(line) {
				want = append(want, i+1)
			}
		}
		text := strings.Join(append(lines, ""), ending)
		err = p.find(t.Context(), []byte(text), func(m match) bool {
			require.Equal(t, lines[m.number-1], strings.TrimSuffix(text[m.start:lineEnd([]byte(text), m.start)], "\r"))
			require.Equal(t, p.expression.FindStringIndex(lines[m.number-1])[0], m.at)
			got = append(got, m.number)
			return true
		})
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// Short patterns that describe a huge expression are refused before it is made.
func TestPatternSizeIsComputedFirst(t *testing.T) {
	for _, pattern := range []string{
		strings.Repeat(".{1000}", 280), strings.Repeat(`\pL{1000}`,
			200), strings.Repeat("(a{0,30}){0,30}", 100),
		strings.Repeat(`(?i:\pL{999})`, 150), strings.Repeat("(?:ab|c){500}", 150),
	} {
		for _, c := range []bool{false, true} {
			allocated := allocates(func() {
				_, err := newPattern(pattern, false, c)
				require.ErrorContains(t, err, "steps")
			})
			require.Less(t, allocated, uint64(4<<20), pattern)
		}
	}
	_, err := newPattern(".{1000}x{1000}(ab){500}", false, false)
	require.NoError(t, err)
}

func TestRequired(t *testing.T) {
	for expression, want := range map[string][]string{
		"func.*[Rr]etry": {"func"}, "[x-z]needle$": {"needle"}, "(foo)+x": {"foo"},
		`\bfoo\b(ba)r`: {"foo"}, "xyz+y": {"xy"}, "x{0}": nil, "^$": nil, "a|[bc]": nil,
		"(foo)*xy": {"xy"}, "(?:foo){2,}": {"foo"}, "(?:foo){0,2}": nil, "": nil,
		"x.*longer": {"longer"}, "hello|world": {"hello", "world"}, "foo|[a-z]": nil,
		"(?i)ab": {"ab"}, "(?i)X1234": {"x1234"}, "(?i)ſ": {"s"}, "(?i)é": nil,
		"(?i)aéretry": {"retry"}, "(?i)retry.*timeout": {"timeout"}, "Ab.(?i)c": {"ab"},
		"a1|b2|c3|d4|e5|f6|g7|h8|i9": nil, `a|\n`: nil,
	} {
		p, err := newPattern(expression, false, false)
		require.NoError(t, err)
		var got []string
		for _, literal := range p.literals {
			got = append(got, string(literal))
		}
		require.ElementsMatch(t, want, got, expression)
	}
}

func TestInvalidPatterns(t *testing.T) {
	for expression, why := range map[string]string{
		"(": "missing closing )", ")|(": "unexpected )", `(?:[a-z]{50}){1000}`: "", `(?:abcdefghijklmn){900}`: "the limit is 10000",
	} {
		for _, c := range []bool{false, true} {
			_, err := newPattern(expression, false, c)
			require.ErrorContains(t, err, "invalid pattern "+strconv.Quote(expression))
			require.ErrorContains(t, err, why)
		}
		_, err := newPattern(expression, true, false)
		require.NoError(t, err)
	}
	_, err := newPattern(strings.Repeat("x", maxPattern+1), true, false)
	require.ErrorContains(t, err, "more than 10000 bytes")
}

// A line is searched by itself, so a pattern of two lines is refused instead of never found.
func TestPatternsOfLinesAreRefused(t *testing.T) {
	for _, pattern := range []string{`a\nb`, "a\nb", `(a\n)+`, `a(\n|\r\n)b`, `(?:x\n){2}`, `a\r\nb`} {
		_, err := newPattern(pattern, false, false)
		if pattern == `a(\n|\r\n)b` { // not recognized
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "each line is searched by itself", pattern)
	}
	_, err := newPattern("a\nb", true, true)
	require.ErrorContains(t, err, "each line is searched by itself")
	for _, pattern := range []string{`a\s`, `[^\n]+`, `a|\n`, `(\n)?a`, `\\n`} {
		_, err := newPattern(pattern, false, false)
		require.NoError(t, err, pattern)
	}
}

func TestPatternFindIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := func(match) bool { return true }
	p, err := newPattern("a[^a]", false, false)
	require.NoError(t, err)
	require.ErrorIs(t, p.find(ctx, []byte(strings.Repeat("ab\n", checkInterval)), never),
		context.Canceled)
	require.ErrorIs(t, p.find(ctx, []byte(strings.Repeat("b", 2*longLine)), never),
		context.Canceled)
}

// BenchmarkPattern searches a text of 8 MB that looks like source code.
func BenchmarkPattern(b *testing.B) {
	line := "\tif err := client.Send(ctx, request{Name: \"again\", Value: 17}); err != nil {\n"
	text := []byte(strings.Repeat(line+"\t\treturn fmt.Errorf(\"send: %w\", err)\n", 70_000))
	for _, expression := range []string{"retryafter", `func \w+\(`, "TODO|FIXME", "(?i)retryafter",
		"(?i)todo|fixme", "(?i)retry.*timeout"} {
		b.Run(expression, func(b *testing.B) {
			p, err := newPattern(expression, false, false)
			require.NoError(b, err)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				require.NoError(b, p.find(b.Context(), text, func(match) bool { return true }))
			}
		})
	}
}
