package explore

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// printable is a name on one line of text.
func printable(name string) string { return tools.Printable(name) }

// code is s as a Markdown code span.
func code(s string) string {
	s = printable(s)
	ticks := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// fence is a Markdown fence that nothing in s can close.
func fence(s string) string { return strings.Repeat("`", max(3, longestRun(s)+1)) }

// longestRun is the length of the longest run of backticks in s.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// clip cuts s to at most size bytes, between characters, and marks the cut.
func clip(s string, size int) string {
	if kept := cutBytes(s, size); len(kept) < len(s) {
		return kept + "…"
	}
	return s
}

// excerpt is a found line on one line of an answer: without its indentation, around the
// place of the match if it is long, and without control characters.
func excerpt(line string, at int) string {
	const before, longest = 80, 300
	start := len(line) - len(strings.TrimLeft(line, " \t"))
	lead := ""
	if at-start > longest-before {
		start, lead = at-before, "…"
		for !utf8.RuneStart(line[start]) {
			start--
		}
	}
	line = clip(strings.TrimRight(line[start:], " \t\r"), longest)
	return lead + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, line)
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size is a number of bytes for a person.
func size[N int | int64](n N) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return count(int(n), "byte", "bytes")
	}
}

// validPath reports whether a path survives JSON, which carries Unicode text only.
func validPath(path string) bool { return utf8.ValidString(path) }
