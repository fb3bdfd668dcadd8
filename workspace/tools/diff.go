package tools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// diffContext is the number of unchanged lines around the changes of a hunk.
	diffContext = 3
	// maxEdits bounds the work of finding a shortest diff. Texts that differ more are shown as
	// replaced.
	maxEdits = 1000
)

// diffLine is a line of a diff.
type diffLine struct {
	sign byte // ' ', '-' or '+'
	text string
}

// unified returns the difference between two texts as a unified diff, or "".
func unified(from, to, old, new string) string {
	if old == new && from == to {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", text.Printable(from), text.Printable(to))
	lines := diff(splitLines(old), splitLines(new))
	oldLine, newLine := 1, 1 // of lines[0]
	for len(lines) > 0 {
		skip := slices.IndexFunc(lines, changed) - diffContext
		if skip < -diffContext {
			break
		}
		skip = max(skip, 0)
		oldLine, newLine, lines = oldLine+skip, newLine+skip, lines[skip:]
		hunk := lines[:hunkEnd(lines)]
		oldCount, newCount := writeHunk(&b, hunk, oldLine, newLine)
		oldLine, newLine, lines = oldLine+oldCount, newLine+newCount, lines[len(hunk):]
	}
	return b.String()
}

func changed(line diffLine) bool { return line.sign != ' ' }

// hunkEnd returns the length of the first hunk of lines, which ends where enough unchanged lines
// follow.
func hunkEnd(lines []diffLine) int {
	end := slices.IndexFunc(lines, changed) + 1
	for i := end; i < len(lines) && i < end+2*diffContext+1; i++ {
		if changed(lines[i]) {
			end = i + 1
		}
	}
	return min(end+diffContext, len(lines))
}

func writeHunk(b *strings.Builder, hunk []diffLine, oldLine, newLine int) (oldCount, newCount int) {
	for _, line := range hunk {
		if line.sign != '+' {
			oldCount++
		}
		if line.sign != '-' {
			newCount++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", lineRange(oldLine, oldCount), lineRange(newLine, newCount))
	for _, line := range hunk {
		b.WriteByte(line.sign)
		b.WriteString(line.text)
		if !strings.HasSuffix(line.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	return oldCount, newCount
}

// lineRange formats a range for the header of a hunk. An empty range is given by the line before
// it.
func lineRange(first, count int) string {
	switch count {
	case 0:
		return strconv.Itoa(first-1) + ",0"
	case 1:
		return strconv.Itoa(first)
	default:
		return fmt.Sprintf("%d,%d", first, count)
	}
}

// splitLines returns the lines of s with their line endings.
func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

// diff returns the lines of both texts with their signs.
func diff(old, new []string) []diffLine {
	same := 0
	for same < min(len(old), len(new)) && old[same] == new[same] {
		same++
	}
	tail := 0
	for tail < min(len(old), len(new))-same && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	lines := signed(nil, ' ', old[:same])
	lines = append(lines, middle(old[same:len(old)-tail], new[same:len(new)-tail])...)
	return signed(lines, ' ', old[len(old)-tail:])
}

func signed(lines []diffLine, sign byte, texts []string) []diffLine {
	for _, line := range texts {
		lines = append(lines, diffLine{sign, line})
	}
	return lines
}

// middle returns a shortest diff by the greedy algorithm of Myers (1986), or everything replaced if
// that needs too many edits. reach[d][k+d] is the furthest index in old reached with d edits on
// diagonal k, the difference of the indices in old and new.
func middle(old, new []string) []diffLine {
	var reach [][]int
	for d := 0; d <= min(len(old)+len(new), maxEdits); d++ {
		row := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x = stepTo(reach[d-1], d-1, k)
			}
			for x < len(old) && x-k < len(new) && old[x] == new[x-k] {
				x++
			}
			row[k+d] = x
			if x >= len(old) && x-k >= len(new) {
				return trace(append(reach, row), old, new)
			}
		}
		reach = append(reach, row)
	}
	return signed(signed(nil, '-', old), '+', new)
}

// stepTo returns the furthest index in old on diagonal k that one more edit reaches from the row of
// d edits.
func stepTo(row []int, d, k int) int {
	down, right := -1, -1
	if k+1 <= d {
		down = row[k+1+d] // insert a line of new
	}
	if k-1 >= -d {
		right = row[k-1+d] + 1 // delete a line of old
	}
	return max(down, right)
}

// trace returns the diff that reach describes, walking back from the end of both texts.
func trace(reach [][]int, old, new []string) []diffLine {
	var lines []diffLine
	x, y := len(old), len(new)
	for d := len(reach) - 1; d >= 0; d-- {
		k := x - y
		from := 0
		if d > 0 {
			from = stepTo(reach[d-1], d-1, k)
		}
		for ; x > from; x, y = x-1, y-1 {
			lines = append(lines, diffLine{' ', old[x-1]})
		}
		if d == 0 {
			break
		}
		if down := k+1 <= d-1 && reach[d-1][k+1+d-1] == from; down {
			y--
			lines = append(lines, diffLine{'+', new[y]})
		} else {
			x--
			lines = append(lines, diffLine{'-', old[x]})
		}
	}
	slices.Reverse(lines)
	return lines
}
