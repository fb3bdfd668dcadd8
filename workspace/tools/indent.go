package tools

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// applyReindented is [Replacement.Apply], but if the text to replace does not occur exactly, it also finds whole lines that differ
// from it only in their indentation, and indents the new text as those lines are. reindented reports whether it did.
func (r Replacement) applyReindented(path, content string) (edited string, reindented bool, err error) {
	edited, err = r.Apply(path, content)
	var failed *MatchError
	if !errors.As(err, &failed) || failed.Count > 0 {
		return edited, false, err
	}
	r = r.withLineEndings(content)
	old, lines := splitLines(r.Old), splitLines(content)
	if len(old) == 0 || len(old)*len(lines) > maxCompared {
		return "", false, err
	}
	var b strings.Builder
	var found []int
	rest := 0 // the first line that is not in b
	for at := 0; at+len(old) <= len(lines); at++ {
		window := lines[at : at+len(old)]
		indented, ok := reindent(old, window, splitLines(r.New))
		if !ok {
			continue
		}
		found = append(found, at+1)
		b.WriteString(strings.Join(lines[rest:at], "") + indented)
		if last := window[len(window)-1]; !strings.HasSuffix(r.Old, "\n") {
			b.WriteString(last[len(strings.TrimRight(last, "\r\n")):])
		}
		rest = at + len(old)
		at = rest - 1
	}
	if len(found) == 0 || len(found) > 1 && !r.All {
		return "", false, &MatchError{Path: path, Count: len(found), Lines: found[:min(len(found), 2)]}
	}
	return b.String() + strings.Join(lines[rest:], ""), true, nil
}

// maxCompared is the most lines that are compared, if every one must be.
const maxCompared = 50_000_000

// reindent returns the new lines with the indentation that lines have compared to old. ok is false if old and lines differ in
// anything else, or if that indentation cannot be determined.
func reindent(old, lines, replacement []string) (text string, ok bool) {
	var m indentMap
	for i := range lines {
		from, was := cutIndent(old[i])
		to, is := cutIndent(lines[i])
		if i == len(lines)-1 && !strings.HasSuffix(was, "\n") { // the old text need not end with the line
			is = strings.TrimRight(is, "\r\n")
		}
		switch {
		case was != is:
			return "", false
		case is == "" || is == "\n" || is == "\r\n": // the spaces in an empty line do not matter
		case !m.add(from, to):
			return "", false
		}
	}
	var b strings.Builder
	for _, line := range replacement {
		indent, rest := cutIndent(line)
		if rest != "" && rest != "\n" && rest != "\r\n" {
			if indent, ok = m.apply(indent); !ok {
				return "", false
			}
		}
		b.WriteString(indent + rest)
	}
	return b.String(), len(m.points) > 0
}

// cutIndent splits a line after the spaces and tabs at its beginning.
func cutIndent(line string) (indent, rest string) {
	rest = strings.TrimLeft(line, " \t")
	return line[:len(line)-len(rest)], rest
}

// indentMap translates indentation. Either is made of spaces or of tabs, and the width of one is a linear function of the other's.
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

// apply translates indentation. ok is false if the examples do not say how.
func (m *indentMap) apply(indent string) (translated string, ok bool) {
	if !madeOf(&m.from, indent) {
		return "", false
	}
	to := cmp.Or(m.to, m.from)
	if width, ok := m.points[len(indent)]; ok {
		return strings.Repeat(string(to), width), true
	}
	widths := slices.Sorted(maps.Keys(m.points))
	first, last := widths[0], widths[len(widths)-1]
	over, up := last-first, m.points[last]-m.points[first] // the slope is up/over
	switch {
	case m.from == to:
		over, up = 1, 1
	case len(widths) == 1:
		over, up = first, m.points[first] // nothing corresponds to nothing
	}
	if over <= 0 || up <= 0 {
		return "", false
	}
	for _, width := range widths {
		if (width-first)*up != (m.points[width]-m.points[first])*over {
			return "", false
		}
	}
	rise := (len(indent) - first) * up
	width := m.points[first] + rise/over
	if rise%over != 0 || width < 0 {
		return "", false
	}
	return strings.Repeat(string(to), width), true
}
