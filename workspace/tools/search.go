package tools

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

type searchInput struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression (RE2, as in Go), matched against one line at a time"`
	Path       string `json:"path,omitempty" jsonschema:"the file or directory to search; absolute, or relative to the first root; default every root"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only files that match: see find_files"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"whether pattern is plain text; default false"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"whether upper and lower case are alike; default false"`
	Context    int    `json:"context,omitempty" jsonschema:"how many lines to show before and after each match; default 0"`
	Ignored    string `json:"ignored,omitempty" jsonschema:"what becomes of files that git ignores"`
}

type searchResult struct {
	Files   []matchedFile `json:"files"`
	Matches int           `json:"matches" jsonschema:"how many matching lines are shown"`
	Looked  int           `json:"files_looked_at"`
	LeftOut *LeftOut      `json:"left_out,omitempty"`
	Cut     *Cut          `json:"cut,omitempty"`
}

type matchedFile struct {
	Place
	Lines []matchedLine `json:"lines"`
}

type matchedLine struct {
	Line  int    `json:"line"`
	Text  string `json:"text" jsonschema:"the line without its end, or the part of a long one around the match"`
	Match bool   `json:"match" jsonschema:"false for a line of the context"`
}

// maxContext is the most lines that are shown before and after a match.
const maxContext = 20

func (s *Set) searchTool() Tool {
	return define(s, Tool{
		Name:  "search",
		Title: "Search",
		Description: "Search the content of text files, in every root or in one directory or file, for lines that match a regular " +
			"expression or hold a text. What git ignores is left out unless ignored is include; links are not followed.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("pattern", "path", "glob")
		in.atLeast("context", 0)
		in.atMost("context", maxContext)
		in.oneOf("ignored", "leave_out", "include")
	}, s.search)
}

func (in searchInput) query() (*Pattern, error) {
	syntax, letters := Expression, CaseMatters
	if in.Literal {
		syntax = Literal
	}
	if in.IgnoreCase {
		letters = CaseIgnored
	}
	return NewPattern(in.Pattern, syntax, letters)
}

func (s *Set) search(ctx context.Context, in searchInput) (searchResult, error) {
	out := searchResult{Files: []matchedFile{}}
	query, err := in.query()
	if err != nil {
		return out, err
	}
	look, err := s.look(in.Path, in.Glob, in.Ignored)
	if err != nil {
		return out, err
	}
	// One more than is shown, to know that there are more.
	lookup := Lookup{Query: query, MaxFileSize: s.o.MaxFileSize, MaxHits: s.o.MaxMatches + 1, MaxText: s.o.MaxBytes, Context: in.Context, Show: s.excerpt}
	room, unnameable := s.o.MaxBytes, 0
	tally, cut, err := s.inTime(ctx, func(ctx context.Context) (Tally, error) {
		return look.Search(ctx, lookup, func(f Found) error {
			if !utf8.ValidString(f.Place().Path) {
				unnameable++
				return nil
			}
			if out.Cut = s.take(&out, f, &room); out.Cut != nil {
				return fs.SkipAll
			}
			return nil
		})
	})
	if err != nil {
		return out, err
	}
	if out.Cut == nil {
		out.Cut = cut
	}
	if out.Cut != nil {
		out.Cut.How = "Give a narrower pattern, a glob, or a path."
		out.Cut.After = out.last()
	}
	out.Looked, out.LeftOut = tally.Files, leftOut(tally.Skipped, unnameable)
	return out, nil
}

// take adds the lines of a file as far as there is room for them.
func (s *Set) take(out *searchResult, f Found, room *int) *Cut {
	file := matchedFile{Place: f.Place(), Lines: []matchedLine{}}
	*room -= len(file.Path) + len(file.Root)
	var cut *Cut
	for _, line := range f.Lines {
		*room -= len(line.Text)
		switch {
		case *room < 0:
			cut = &Cut{Limit: "bytes", Bound: int64(s.o.MaxBytes)}
		case line.Role == Hit && out.Matches == s.o.MaxMatches:
			cut = &Cut{Limit: "matches", Bound: int64(s.o.MaxMatches)}
		}
		if cut != nil {
			break
		}
		if line.Role == Hit {
			out.Matches++
		}
		file.Lines = append(file.Lines, matchedLine{line.Number, line.Text, line.Role == Hit})
	}
	if len(file.Lines) > 0 {
		out.Files = append(out.Files, file)
	}
	return cut
}

// last is the last line that is shown, "" if there is none.
func (r searchResult) last() string {
	if len(r.Files) == 0 {
		return ""
	}
	file := r.Files[len(r.Files)-1]
	return fmt.Sprintf("%s:%d", file.Path, file.Lines[len(file.Lines)-1].Line)
}

// excerpt is a line without its end, or the part of a long one around the match.
func (s *Set) excerpt(line []byte, at int) string {
	text := strings.TrimSuffix(string(line), "\r")
	if len(text) <= s.o.MaxLine {
		return text
	}
	start := max(0, min(at-s.o.MaxLine/4, len(text)-s.o.MaxLine))
	end := start + s.o.MaxLine
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	part := text[start:end]
	if start > 0 {
		part = "…" + part
	}
	if end < len(text) {
		part += "…"
	}
	return part
}

func (r searchResult) text() string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s (root %s)\n", Printable(f.Path), Printable(f.Root))
		last := 0
		for _, line := range f.Lines {
			if last > 0 && line.Line > last+1 && r.hasContext() {
				b.WriteString("--\n")
			}
			sign := "-"
			if line.Match {
				sign = ":"
			}
			fmt.Fprintf(&b, "%d%s%s\n", line.Line, sign, line.Text)
			last = line.Line
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s in %s, %d looked at\n", count(r.Matches, "matching line", "matching lines"), count(len(r.Files), "file", "files"), r.Looked)
	return b.String() + r.LeftOut.note() + r.Cut.note()
}

// hasContext reports whether lines of the context are shown.
func (r searchResult) hasContext() bool {
	for _, f := range r.Files {
		for _, line := range f.Lines {
			if !line.Match {
				return true
			}
		}
	}
	return false
}

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

// Query finds lines in a text. It is immutable and used by several goroutines at once.
type Query interface {
	// Find calls found for every line of text that is a hit, in order, until found returns false. The
	// error is the context's.
	Find(ctx context.Context, text []byte, found func(Match) bool) error
	// Full is the score of a hit that leaves nothing to be desired.
	Full() int
}

// Match is a line that a [Query] found.
type Match struct {
	// Number is the line's, from 1.
	Number int
	// Start and End are where in the text it is, without the "\n" at its end.
	Start, End int
	// At is where in the line the match begins.
	At int
	// Score says how good a hit it is, the higher the better.
	Score int
}

// searchedAtOnce is how much is read or searched between two looks at the context, in bytes.
const searchedAtOnce = 16 << 10
