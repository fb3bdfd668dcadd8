package tools

import (
	"bytes"
	"context"
	"unicode/utf8"
)

// DefaultMaxFileSize is the size in bytes of a file over which it is not searched, where a [Lookup] names no other.
const DefaultMaxFileSize = 8 << 20

// Lookup says what to search files for, and how to show it.
type Lookup struct {
	Query Query
	// MaxFileSize is the size in bytes over which a file is not searched. Default [DefaultMaxFileSize].
	MaxFileSize int64
	// MaxHits is the most hits of one file. Default no limit.
	MaxHits int
	// MaxText bounds the lines of one file, in bytes: once they have more, what follows is left out. It bounds the memory of
	// a search whose caller stops by then. Default no limit.
	MaxText int
	// Context is how many lines are shown before and after each hit.
	Context int
	// Show makes of a line what is shown of it. at is where the match begins, 0 for a line of
	// the context. It is called by several goroutines at once. Default the line as it is.
	Show func(line []byte, at int) string
}

// Found is a file with its hits.
type Found struct {
	File
	// Lines are the hits, all of one score, and the lines around them, sorted by number.
	Lines []Line
	Score int
}

// Line is a line that is shown.
type Line struct {
	// Number is from 1.
	Number int
	Text   string
	Role   Role
}

// Role says why a line is shown.
type Role int

const (
	// Hit: it was searched for.
	Hit Role = iota
	// Around: it stands beside one.
	Around
)

// Hits is how many of the lines are hits.
func (f Found) Hits() (n int) {
	for _, line := range f.Lines {
		if line.Role == Hit {
			n++
		}
	}
	return n
}

func (l Lookup) withDefaults() Lookup {
	if l.MaxFileSize == 0 {
		l.MaxFileSize = DefaultMaxFileSize
	}
	if l.Show == nil {
		l.Show = func(line []byte, _ int) string { return string(line) }
	}
	return l
}

// collector gathers the best hits of one text after the other.
type collector struct {
	lookup *Lookup
	hits   []Match
	best   int
	take   func(Match) bool // made once: it is handed on through an interface
}

func newCollector(l *Lookup) *collector {
	c := &collector{lookup: l}
	c.take = func(m Match) bool {
		if m.Score > c.best {
			c.best, c.hits = m.Score, c.hits[:0]
		}
		if m.Score == c.best && !c.full() {
			c.hits = append(c.hits, m)
		}
		return !c.full() || c.best < l.Query.Full()
	}
	return c
}

func (c *collector) full() bool { return c.lookup.MaxHits > 0 && len(c.hits) >= c.lookup.MaxHits }

// search finds the best hits of a text. They are good until the next search. The error is errBinary
// for a text with hits that is not UTF-8, or the context's.
func (c *collector) search(ctx context.Context, text []byte) ([]Match, error) {
	c.hits, c.best = c.hits[:0], 0
	err := c.lookup.Query.Find(ctx, text, c.take)
	if err == nil && len(c.hits) > 0 && !utf8.Valid(text) {
		err = errBinary
	}
	return c.hits, err
}

// lines shows hits, and what is around them.
func (l Lookup) lines(text []byte, hits []Match) []Line {
	lines := make([]Line, 0, len(hits))
	last, end := 0, 0 // the last line that is shown, and where it ends
	size, counted := 0, 0
	for i, hit := range hits {
		for ; counted < len(lines); counted++ {
			size += len(lines[counted].Text)
		}
		if l.MaxText > 0 && size > l.MaxText {
			break
		}
		if l.Context > 0 {
			lines = append(lines, l.before(text, hit, last)...)
		}
		lines = append(lines, Line{hit.Number, l.Show(text[hit.Start:hit.End], hit.At), Hit})
		last, end = hit.Number, hit.End
		next := 0
		if i+1 < len(hits) {
			next = hits[i+1].Number
		}
		for range l.Context {
			if end+1 >= len(text) || next == last+1 {
				break
			}
			start := end + 1
			end = lineEnd(text, start)
			last++
			lines = append(lines, Line{last, l.Show(text[start:end], 0), Around})
		}
	}
	return lines
}

// before shows the lines before a hit that were not shown yet: those after last.
func (l Lookup) before(text []byte, hit Match, last int) []Line {
	start, number := hit.Start, hit.Number
	for number > last+1 && number > hit.Number-l.Context && start > 0 {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
		number--
	}
	var lines []Line
	for ; number < hit.Number; number++ {
		end := lineEnd(text, start)
		lines = append(lines, Line{number, l.Show(text[start:end], 0), Around})
		start = end + 1
	}
	return lines
}

// lineEnd is where the line that begins at start ends.
func lineEnd(text []byte, start int) int {
	if size := bytes.IndexByte(text[start:], '\n'); size >= 0 {
		return start + size
	}
	return len(text)
}
