package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// edit replaces whole lines, which have no ends here, by others.
type edit struct{ old, new []string }

// editForm shows how an edit is written.
const editForm = "```text\n/edit PATH\n<<<<<<< old\nthe lines as they are\n=======\nthe lines as they shall be\n>>>>>>> new\n```\n"

// Characters of the markers around the old and the new lines.
const (
	markOld   = "<"
	markNew   = "="
	markEnd   = ">"
	shortMark = 7
)

// parseEdit reads the lines below /edit: a marker of "<", the old lines, one of "=", the new ones, one of ">".
// A marker is a line of at least seven such characters, all three as long as the first. Behind the
// first and the last one a label may stand.
func parseEdit(body string) (edit, error) {
	lines := strings.Split(strings.TrimRight(body, " \t\r\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	size := len(lines[0]) - len(strings.TrimLeft(lines[0], markOld))
	if size < shortMark || !isMark(lines[0], markOld, size) {
		return edit{}, fmt.Errorf("the first line below must be %s", code(strings.Repeat(markOld, shortMark)))
	}
	end := len(lines) - 1
	if !isMark(lines[end], markEnd, size) {
		return edit{}, fmt.Errorf("the last line must be %s", code(strings.Repeat(markEnd, size)))
	}
	between := lines[1:max(end, 1)]
	middle := slices.Index(between, strings.Repeat(markNew, size))
	if middle < 0 {
		return edit{}, fmt.Errorf("between the old and the new lines must stand %s", code(strings.Repeat(markNew, size)))
	}
	e := edit{between[:middle], between[middle+1:]}
	switch again := slices.IndexFunc(e.new, func(line string) bool {
		return line == strings.Repeat(markNew, size) || isMark(line, markEnd, size)
	}); {
	case again >= 0:
		return edit{}, fmt.Errorf("the marker %s stands there twice: make all three markers longer", code(e.new[again]))
	case len(e.old) == 0:
		return edit{}, errors.New("there are no old lines")
	}
	return e, nil
}

// isMark reports whether line is a marker of so many characters, with or without a label.
func isMark(line, character string, size int) bool {
	rest, ok := strings.CutPrefix(line, strings.Repeat(character, size))
	return ok && (rest == "" || rest[0] == ' ')
}

// errNotThere: the old lines are not in the file.
var errNotThere = errors.New("these lines are not in it, as whole lines and just as they are given")

// apply replaces the old lines in text, where they must stand exactly once. The new ones end as the old
// ones do.
func (e edit) apply(text string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var found []int
	for i := 0; i+len(e.old) <= len(lines); i++ {
		if slices.EqualFunc(e.old, lines[i:i+len(e.old)], func(old, line string) bool { return old == bare(line) }) {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 0:
		return "", errNotThere
	case len(found) > 1:
		return "", fmt.Errorf("these lines are in it %d times, first at lines %d and %d: give more of the lines around them",
			len(found), found[0]+1, found[1]+1)
	}
	first, after := found[0], found[0]+len(e.old)
	ending := lines[0][len(bare(lines[0])):]
	if ending == "" {
		ending = "\n"
	}
	var b strings.Builder
	b.WriteString(strings.Join(lines[:first], ""))
	for i, line := range e.new {
		b.WriteString(line)
		if i < len(e.new)-1 || strings.HasSuffix(lines[after-1], "\n") {
			b.WriteString(ending)
		}
	}
	b.WriteString(strings.Join(lines[after:], ""))
	return b.String(), nil
}

// bare is a line without its end.
func bare(line string) string { return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") }
