package tools

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// applyReindented is [Replacement.Apply], but if the text to replace does not occur exactly, it
// also finds whole lines that differ from it only in their indentation, and indents the new text as
// those lines are. reindented reports whether it did.
func (r Replacement) applyReindented(path, content string,
	maxSize int64) (edited string, reindented bool, err error) {
	edited, err = r.Apply(path, content, maxSize)
	var failed *MatchError
	if !errors.As(err, &failed) || failed.Count > 0 {
		return edited, false, err
	}
	r = r.withLineEndings(content)
	old := splitLines(r.Old)
	if count := strings.Count(content, "\n"); len(old) == 0 || count > maxLines ||
		len(old)*count > maxCompared {
		return "", false, err
	}
	lines, replacement := splitLines(content), splitLines(r.New)
	var b strings.Builder
	var found []int
	rest := 0 // the first line that is not in b
	for at := 0; at+len(old) <= len(lines); at++ {
		window := lines[at : at+len(old)]
		indents, ok := compareIndents(old, window)
		if !ok {
			continue
		}
		size, ok := indents.size(replacement)
		if !ok {
			continue
		}
		found = append(found, at+1)
		if len(found) > 1 && !r.All {
			break
		}
		for _, line := range lines[rest:at] {
			b.WriteString(line)
		}
		if size += int64(b.Len()); size > maxSize {
			return "", false, &workspace.TooLargeError{Path: path, Size: size, Limit: maxSize}
		}
		indents.write(&b, replacement)
		if last := window[len(window)-1]; !strings.HasSuffix(r.Old, "\n") {
			b.WriteString(last[len(strings.TrimRight(last, "\r\n")):])
		}
		rest = at + len(old)
		at = rest - 1
	}
	if len(found) == 0 || len(found) > 1 && !r.All {
		return "", false, &MatchError{Path: path, Count: len(found), Lines: found}
	}
	for _, line := range lines[rest:] {
		b.WriteString(line)
	}
	return b.String(), true, nil
}

const (
	// maxLines is the most lines of a file in which indentation is adapted.
	maxLines = 1_000_000
	// maxCompared is the most lines that are compared, if every one must be.
	maxCompared = 50_000_000
)

// compareIndents returns the indentation that lines have compared to old. ok is false if they
// differ in anything else, or if they do not tell.
func compareIndents(old, lines []string) (m indentMap, ok bool) {
	for i := range lines {
		from, was := cutIndent(old[i])
		to, is := cutIndent(lines[i])
		// the old text need not end with the line
		if i == len(lines)-1 && !strings.HasSuffix(was, "\n") {
			is = strings.TrimRight(is, "\r\n")
		}
		switch {
		case was != is:
			return m, false
		case isBlank(is): // the spaces in an empty line do not matter
		case !m.add(from, to):
			return m, false
		}
	}
	return m, len(m.points) > 0
}

func isBlank(rest string) bool { return rest == "" || rest == "\n" || rest == "\r\n" }

// size returns the number of bytes that write writes. ok is false if the indentation of a line
// cannot be determined.
func (m *indentMap) size(lines []string) (size int64, ok bool) {
	for _, line := range lines {
		indent, rest := cutIndent(line)
		width := len(indent)
		if !isBlank(rest) {
			if width, ok = m.width(indent); !ok {
				return 0, false
			}
		}
		size += int64(width) + int64(len(rest))
	}
	return size, true
}

// write writes the lines with their indentation translated, of which size has found out that it can
// be.
func (m *indentMap) write(b *strings.Builder, lines []string) {
	to := cmp.Or(m.to, m.from)
	for _, line := range lines {
		indent, rest := cutIndent(line)
		if !isBlank(rest) {
			width, _ := m.width(indent)
			indent = strings.Repeat(string(to), width)
		}
		b.WriteString(indent)
		b.WriteString(rest)
	}
}

// splitLines returns the lines of s with their line endings.
func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

// cutIndent splits a line after the spaces and tabs at its beginning.
func cutIndent(line string) (indent, rest string) {
	rest = strings.TrimLeft(line, " \t")
	return line[:len(line)-len(rest)], rest
}

// indentMap translates indentation. Either is made of spaces or of tabs, and the width of one is a
// linear function of the other's.
type indentMap struct {
	from, to byte        // what they are made of, 0 if not known
	points   map[int]int // widths that are known
}

// add adds an example. It returns false if it contradicts earlier ones.
func (m *indentMap) add(from, to string) bool {
	if !madeOf(&m.from, from) || !madeOf(&m.to, to) {
		return false
	}
	if m.points == nil {
		m.points = map[int]int{}
	}
	if width, ok := m.points[len(from)]; ok && width != len(to) {
		return false
	}
	m.points[len(from)] = len(to)
	return true
}

// madeOf reports whether indent consists only of c, which it sets if it is not known.
func madeOf(c *byte, indent string) bool {
	if indent == "" {
		return true
	}
	if *c == 0 {
		*c = indent[0]
	}
	return strings.Count(indent, string(*c)) == len(indent)
}

// width returns the translated width of an indentation. ok is false if the examples do not say.
func (m *indentMap) width(indent string) (width int, ok bool) {
	if !madeOf(&m.from, indent) {
		return 0, false
	}
	if width, ok := m.points[len(indent)]; ok {
		return width, true
	}
	widths := slices.Sorted(maps.Keys(m.points))
	first, last := widths[0], widths[len(widths)-1]
	over, up := last-first, m.points[last]-m.points[first] // the slope is up/over
	switch {
	case m.from == cmp.Or(m.to, m.from):
		over, up = 1, 1
	case len(widths) == 1:
		over, up = first, m.points[first] // nothing corresponds to nothing
	}
	if over <= 0 || up <= 0 {
		return 0, false
	}
	for _, width := range widths {
		if (width-first)*up != (m.points[width]-m.points[first])*over {
			return 0, false
		}
	}
	rise := (len(indent) - first) * up
	width = m.points[first] + rise/over
	return width, rise%over == 0 && width >= 0
}
