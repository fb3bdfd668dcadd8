package tools

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// diffContext is the number of unchanged lines around the changes of a hunk.
	diffContext = 3
	// maxDiffLines is the most lines that are compared, in both texts together.
	maxDiffLines = 100_000
)

// unified returns the difference between two texts as a unified diff, or "".
func unified(from, to, old, new string) string {
	if old == new && from == to {
		return ""
	}
	header := fmt.Sprintf("--- %s\n+++ %s\n", text.Printable(from), text.Printable(to))
	return header + hunks(old, new)
}

// hunks returns a unified diff without its header, the names of the files. If there are too many
// lines, it shows only their number.
func hunks(old, new string) string {
	skipped, old, new := trimCommon(old, new)
	if was, is := countLines(old), countLines(new); was+is > maxDiffLines {
		return fmt.Sprintf("[too long to show: %d lines from line %d on become %d]\n", was,
			skipped+1, is)
	}
	_, rest, _ := bytes.Cut(diff.Diff("", []byte(old), "", []byte(new)), []byte("\n+++ \n"))
	var b strings.Builder
	for line := range bytes.Lines(rest) {
		if line[0] == '@' { // the others begin with a sign or a backslash
			var from, was, to, is int
			_, _ = fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@\n", &from, &was, &to, &is)
			line = fmt.Appendf(nil, "@@ -%s +%s @@\n", lineRange(from+skipped, was),
				lineRange(to+skipped, is))
		}
		b.Write(line)
	}
	return b.String()
}

// changedLines returns the lines of a diff that are removed or added, with their signs. If the diff
// is too long to show, it returns the line that says so, which has the number of lines.
func changedLines(old, new string) (lines []string) {
	kept := false
	for line := range strings.Lines(hunks(old, new)) {
		if line[0] != '\\' { // otherwise it says that the line before has no end
			kept = line[0] != ' ' && line[0] != '@'
		}
		if kept {
			lines = append(lines, line)
		}
	}
	return lines
}

// lineRange formats a range for the header of a hunk.
func lineRange(first, count int) string {
	if count == 1 {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}

// trimCommon removes the lines that both texts begin or end with, except for the context of a diff.
// It returns the number of lines removed at the beginning.
func trimCommon(old, new string) (lines int, oldRest, newRest string) {
	same, shorter := 0, min(len(old), len(new))
	for same < shorter && old[same] == new[same] {
		same++
	}
	start := same
	for range diffContext + 1 { // the first to go back to the beginning of the line
		start = max(strings.LastIndexByte(old[:start], '\n'), 0)
	}
	if start > 0 {
		start++
	}
	tail := 0
	for tail < shorter-same && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	rest := old[len(old)-tail:]
	for range diffContext + 1 { // the first to go on to the end of the line
		_, rest, _ = strings.Cut(rest, "\n")
	}
	tail = len(rest)
	return strings.Count(old[:start], "\n"), old[start : len(old)-tail], new[start : len(new)-tail]
}

// countLines returns the number of lines of s, the last of which need not end.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
