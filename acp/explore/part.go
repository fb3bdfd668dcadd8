package explore

import (
	"fmt"

	"github.com/acp-agent/acp-agent/workspace"
)

// part is what was read of a file.
type part struct {
	text string
	// first and last are the lines that text holds; both are 0 if it holds none.
	first, last int
	// total is how many lines the file has, 0 if that is not known.
	total int
	// cut says that there was no room for all that was asked for, and next is the line to go on with.
	cut  bool
	next int
}

// options say which lines to read, up to room bytes of text, which is not 0.
func (l lines) options(room int) workspace.TextOptions {
	o := workspace.TextOptions{First: max(l.first, 1), MaxLines: allLines, MaxBytes: room, MaxWhole: 1}
	if l.last > 0 {
		o.MaxLines = l.last - o.First + 1
	}
	return o
}

const allLines = 1<<31 - 1

// partOf is what was read. Lines that nobody asked for are none that were cut.
func partOf(t workspace.Text) part {
	p := part{text: t.Content, cut: t.Cut == workspace.CutByBytes || t.Cut == workspace.CutInLine, next: t.Next()}
	if t.Content != "" {
		p.first, p.last = t.First, t.First+t.Lines-1
	} else if p.cut {
		p.next = t.First
	}
	if t.Total > 0 && (t.Cut == workspace.NotCut || p.first == 0) {
		p.total = t.Total
	}
	return p
}

// summary says what was read of the file called name.
func (p part) summary(name string) string {
	switch {
	case p.first == 0 && p.cut:
		return fmt.Sprintf("Nothing of %s.", code(name))
	case p.first == 0 && p.total == 0:
		return fmt.Sprintf("%s is empty.", code(name))
	case p.first == 0:
		return fmt.Sprintf("%s has only %s.", code(name), count(p.total, "line", "lines"))
	case p.first == 1 && p.last == p.total:
		return fmt.Sprintf("%s, %s.", code(name), count(p.total, "line", "lines"))
	}
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	if p.first == p.last {
		return fmt.Sprintf("%s, line %d%s.", code(name), p.first, of)
	}
	return fmt.Sprintf("%s, lines %d to %d%s.", code(name), p.first, p.last, of)
}
