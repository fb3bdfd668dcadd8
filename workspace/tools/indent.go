package tools

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// adaptation says how the text to replace differed from the file.
type adaptation int

const (
	indentation adaptation = 1 << iota
	trailing               // white space at the ends of lines, or empty lines at its end
)

// notes tell a model about the adaptation.
func (a adaptation) notes() (notes []string) {
	if a&indentation != 0 {
		notes = append(notes, "old_text differs from the file in its indentation; new_text is "+
			"indented like the file")
	}
	if a&trailing != 0 {
		notes = append(notes, "old_text differs from the file in white space at the end of a line "+
			"or of the text; this was ignored")
	}
	return notes
}

// applyLoosely is [replacement.apply], but if the text to replace does not occur exactly, it also
// finds whole lines that differ from it only in their indentation or in white space at their ends,
// and gives the new text the indentation of those lines.
func (r replacement) applyLoosely(
	ctx context.Context, path, content string, maxSize int64,
) (edited string, how adaptation, err error) {
	edited, err = r.apply(path, content, maxSize)
	if failed, ok := errors.AsType[*matchError](err); !ok || failed.Count > 0 {
		return edited, how, err
	}
	r = r.withLineEndings(content)
	edited, how, err = r.applyLines(ctx, path, content, maxSize)
	if failed, ok := errors.AsType[*matchError](err); !ok || failed.Count > 0 {
		return edited, how, err
	}
	if shorter, ok := r.withoutLastBlank(); ok {
		edited, how, err = shorter.applyLines(ctx, path, content, maxSize)
		how |= trailing
	}
	return edited, how, err
}

// withoutLastBlank returns the replacement without the empty lines at the end of the old text, and
// without as many at the end of the new text. ok is false if the old text has none there.
func (r replacement) withoutLastBlank() (shorter replacement, ok bool) {
	old := splitLines(r.Old)
	for n := len(old); n > 1 && isBlankLine(old[n-1]); n-- {
		old, ok = old[:n-1], true
	}
	rest := splitLines(r.New)
	for range len(splitLines(r.Old)) - len(old) {
		if n := len(rest); n > 1 && isBlankLine(rest[n-1]) {
			rest = rest[:n-1]
		}
	}
	r.Old, r.New = strings.Join(old, ""), strings.Join(rest, "")
	if r.New != "" && !strings.HasSuffix(r.New, "\n") { // or the next line would join it
		r.Old = strings.TrimRight(r.Old, "\r\n")
	}
	return r, ok
}

func isBlankLine(line string) bool { return strings.TrimSpace(line) == "" }

// applyLines replaces whole lines that are loosely like the old text.
func (r replacement) applyLines(
	ctx context.Context, path, content string, maxSize int64,
) (edited string, how adaptation, err error) {
	none := &matchError{Path: path}
	old, replacement := splitLines(r.Old), splitLines(r.New)
	if count := strings.Count(content, "\n"); len(old) == 0 || count > maxLines ||
		(len(old)+len(replacement))*count > maxCompared {
		return "", how, none
	}
	lines := splitLines(content)
	var b strings.Builder
	var found []int
	rest := 0 // the first line that is not in b
	for at := 0; at+len(old) <= len(lines); at++ {
		if ctx.Err() != nil {
			return "", how, context.Cause(ctx)
		}
		window := lines[at : at+len(old)]
		indents, ok := compareLines(old, window)
		if !ok {
			continue
		}
		text, ok := indents.translate(replacement, int(maxSize))
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
		if size := int64(b.Len() + len(text)); size > maxSize {
			return "", how, &workspace.TooLargeError{Path: path, Size: size, Limit: maxSize}
		}
		how |= indents.how
		switch _, end := cutEnding(window[len(window)-1]); {
		case !strings.HasSuffix(r.Old, "\n"):
			text += end
		case end == "": // as the file ends
			text, _ = cutEnding(text)
		}
		b.WriteString(text)
		rest = at + len(old)
		at = rest - 1
	}
	if len(found) == 0 || len(found) > 1 && !r.All {
		return "", 0, &matchError{Path: path, Count: len(found), Lines: found}
	}
	for _, line := range lines[rest:] {
		b.WriteString(line)
	}
	return b.String(), how, nil
}

// cutEnding splits a line before the "\n" or "\r\n" at its end.
func cutEnding(line string) (text, ending string) {
	text = strings.TrimSuffix(line, "\n")
	if text != line {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, line[len(text):]
}

const (
	// maxLines is the most lines of a file in which indentation is adapted.
	maxLines = 1_000_000
	// maxCompared is the most lines that are compared and indented, if every one must be.
	maxCompared = 20_000_000
)

// compareLines compares lines with old, and returns how their indentation differs. ok is false if
// anything else differs, except white space at the ends of lines, or if the indentation cannot be
// determined.
func compareLines(old, lines []string) (m indentMap, ok bool) {
	told := false
	m.same = true
	for i := range lines {
		from, was := cutIndent(old[i])
		to, is := cutIndent(lines[i])
		was, wasEnd := cutEnding(was)
		is, isEnd := cutEnding(is)
		atEnd := i == len(lines)-1 && (wasEnd == "" || isEnd == "") // of the old text, or the file
		text := strings.TrimRight(is, " \t")
		if strings.TrimRight(was, " \t") != text || wasEnd != isEnd && !atEnd {
			return m, false
		}
		if text == "" { // the spaces in an empty line do not matter
			continue
		}
		told = true
		if was != is || isEnd == "" && wasEnd != "" {
			m.how |= trailing
		}
		m.same = m.same && from == to
		m.mixed = m.mixed || !m.add(from, to)
	}
	if !m.same {
		m.how |= indentation
	}
	return m, told && (m.same || !m.mixed)
}

// translate returns the lines with their indentation translated. It stops after most bytes. ok is
// false if the indentation of a line cannot be determined.
func (m *indentMap) translate(lines []string, most int) (text string, ok bool) {
	if m.same {
		return strings.Join(lines, ""), true
	}
	var b strings.Builder
	to := string(cmp.Or(m.to, m.from))
	for _, line := range lines {
		indent, rest := cutIndent(line)
		if !isBlankLine(rest) {
			width, ok := m.width(indent)
			if !ok {
				return "", false
			}
			indent = strings.Repeat(to, min(width, most+1))
		}
		if b.WriteString(indent + rest); b.Len() > most {
			break
		}
	}
	return b.String(), true
}

// splitLines returns the lines of s with their line endings.
func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

// cutIndent splits a line after the spaces and tabs at its beginning.
func cutIndent(line string) (indent, rest string) {
	rest = strings.TrimLeft(line, " \t")
	return line[:len(line)-len(rest)], rest
}

// indentMap translates indentation. Each side uses only spaces or only tabs, and the width on one
// side is a linear function of the width on the other.
type indentMap struct {
	from, to byte        // the character of each side, 0 if not known
	points   map[int]int // widths that are known
	same     bool        // whether all lines are indented alike, so that nothing is translated
	mixed    bool        // whether the examples contradict each other
	how      adaptation
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
