package tools

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

type searchInput struct {
	Pattern    string `json:"pattern" jsonschema:"RE2 expression for one line" min:"1"`
	Path       string `json:"path,omitempty" jsonschema:"a file or directory, PATH; EVERY"`
	Glob       string `json:"glob,omitempty" jsonschema:"as in find_files"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"pattern is plain text"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"ignore case"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match" min:"0" max:"20"`
	fileFilter
}

type searchResult struct {
	Files   []matchedFile
	Matches int // number of matching lines shown
	walked
}

type matchedFile struct {
	location
	// Lines have no line endings; of a long line they have the part around the match.
	Lines []Line
}

func (s *Set) search(ctx context.Context, in searchInput) (searchResult, error) {
	out := searchResult{Files: []matchedFile{}}
	pattern, err := newPattern(in.Pattern, in.Literal, in.IgnoreCase)
	if err != nil {
		return out, err
	}
	options := SearchOptions{
		Query: pattern, MaxFileSize: s.limits.fileSize, MaxText: s.limits.bytes,
		Context: in.Context, Show: s.excerpt,
		MaxHits: s.limits.matches + 1, // one more than is shown, to know whether there are more
	}
	room := s.limits.bytes
	out.walked, err = s.walk(ctx, in.Path, in.Glob, in.fileFilter, &options,
		func(f Found) *truncation { return s.add(&out, f, &room) })
	if out.Cut != nil {
		out.Cut.How, out.Cut.After = "Use a narrower pattern, a glob, or a path.", out.last()
	}
	return out, err
}

// add adds the lines of a file to the result, as far as the limits allow. It returns the limit that
// was reached, or nil.
func (s *Set) add(out *searchResult, f Found, room *int) (reached *truncation) {
	file := matchedFile{location: locate(f.Ref()), Lines: []Line{}}
	*room -= len(file.Path) + len(file.Root)
	for _, line := range f.Lines {
		*room -= len(line.Text)
		switch {
		case *room < 0:
			reached = s.limits.reached("bytes")
		case line.Match && out.Matches == s.limits.matches:
			reached = s.limits.reached("matches")
		}
		if reached != nil {
			break
		}
		if line.Match {
			out.Matches++
		}
		file.Lines = append(file.Lines, line)
	}
	if len(file.Lines) > 0 {
		out.Files = append(out.Files, file)
	}
	return reached
}

// last returns the position of the last line shown, or "".
func (r searchResult) last() string {
	if len(r.Files) == 0 {
		return ""
	}
	file := r.Files[len(r.Files)-1]
	return fmt.Sprintf("%s:%d", file.Path, file.Lines[len(file.Lines)-1].Number)
}

// excerpt returns a line without its line ending, or the part of a long line around the match at
// offset at.
func (s *Set) excerpt(line []byte, at int) string {
	content := strings.TrimSuffix(string(line), "\r")
	limit := s.limits.line
	if len(content) <= limit {
		return content
	}
	start := max(0, min(at-limit/4, len(content)-limit))
	for start > 0 && !utf8.RuneStart(content[start]) {
		start--
	}
	part := text.Prefix(content[start:], limit)
	end := start + len(part)
	if start > 0 {
		part = "…" + part
	}
	if end < len(content) {
		part += "…"
	}
	return part
}

func (r searchResult) String() string {
	context := slices.ContainsFunc(r.Files, func(f matchedFile) bool {
		return slices.ContainsFunc(f.Lines, func(l Line) bool { return !l.Match })
	})
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s\n", f.location)
		last := 0
		for _, line := range f.Lines {
			if context && last > 0 && line.Number > last+1 {
				b.WriteString("--\n")
			}
			sign := "-"
			if line.Match {
				sign = ":"
			}
			fmt.Fprintf(&b, "%d%s%s\n", line.Number, sign, line.Text)
			last = line.Number
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s in %s, visited %d\n",
		text.Count(r.Matches, "matching line", "matching lines"), text.Count(len(r.Files), "file",
			"files"), r.Visited)
	return b.String() + r.notes()
}

// Query finds lines in a text. It must be safe for concurrent use.
type Query interface {
	// Find calls found for every matching line of text, in order, until found returns false. The
	// error is that of ctx.
	Find(ctx context.Context, text []byte, found func(Match) bool) error
}

// Match is a line that a [Query] found.
type Match struct {
	// Number is the line number, from 1.
	Number int
	// Start and End are the offsets of the line in the text, without the "\n" at its end.
	Start, End int
	// At is the offset of the match in the line.
	At int
}

// SearchOptions say what to search files for, and how to show matches.
type SearchOptions struct {
	Query Query
	// MaxFileSize is the size in bytes above which a file is searched in parts. Lines that are
	// longer are not searched. Default 8 MiB.
	MaxFileSize int64
	// MaxHits is the most matches of one file. Default no limit.
	MaxHits int
	// MaxText bounds the lines of one file, in bytes; further lines are left out. It saves memory
	// if the caller would not use more. Default no limit.
	MaxText int
	// Context is the number of lines shown before and after each match.
	Context int
	// Show returns the part of a line to show. at is the offset of the match, 0 for a line of
	// context. It is called from several goroutines at once. Default the whole line.
	Show func(line []byte, at int) string
}

func (o SearchOptions) withDefaults() *SearchOptions {
	o.MaxFileSize = cmp.Or(o.MaxFileSize, defaultMaxFileSize)
	if o.Show == nil {
		o.Show = func(line []byte, _ int) string { return string(line) }
	}
	return &o
}

// Line is a line that a search returns.
type Line struct {
	// Number is the line number, from 1.
	Number int
	Text   string
	// Match is false for a line of context.
	Match bool
}

// collector collects the matches of one text after another.
type collector struct {
	options *SearchOptions
	hits    []Match
	take    func(Match) bool // allocated once, because it escapes through an interface
}

func newCollector(o *SearchOptions) *collector {
	c := &collector{options: o}
	c.take = func(m Match) bool {
		c.hits = append(c.hits, m)
		return o.MaxHits == 0 || len(c.hits) < o.MaxHits
	}
	return c
}

// search returns the matches of a text; they are valid until the next search. The error is that of
// ctx, or errBinary for a text with matches that is not UTF-8.
func (c *collector) search(ctx context.Context, content []byte) ([]Match, error) {
	c.hits = c.hits[:0]
	err := c.options.Query.Find(ctx, content, c.take)
	if err == nil && len(c.hits) > 0 && !utf8.Valid(content) {
		err = errBinary
	}
	return c.hits, err
}

// lines returns the lines of matches with their context.
func (o SearchOptions) lines(content []byte, hits []Match) []Line {
	lines := make([]Line, 0, len(hits))
	last, end := 0, 0 // number and end of the last line in lines
	size, counted := 0, 0
	for i, hit := range hits {
		for ; counted < len(lines); counted++ {
			size += len(lines[counted].Text)
		}
		if o.MaxText > 0 && size > o.MaxText {
			break
		}
		if o.Context > 0 {
			lines = append(lines, o.before(content, hit, last)...)
		}
		lines = append(lines, Line{hit.Number, o.Show(content[hit.Start:hit.End], hit.At), true})
		last, end = hit.Number, hit.End
		next := 0
		if i+1 < len(hits) {
			next = hits[i+1].Number
		}
		for range o.Context {
			if end+1 >= len(content) || next == last+1 {
				break
			}
			start := end + 1
			end = lineEnd(content, start)
			last++
			lines = append(lines, Line{last, o.Show(content[start:end], 0), false})
		}
	}
	return lines
}

// before returns the context before a match, without lines up to last.
func (o SearchOptions) before(content []byte, hit Match, last int) []Line {
	start, number := hit.Start, hit.Number
	for number > last+1 && number > hit.Number-o.Context && start > 0 {
		start = bytes.LastIndexByte(content[:start-1], '\n') + 1
		number--
	}
	var lines []Line
	for ; number < hit.Number; number++ {
		end := lineEnd(content, start)
		lines = append(lines, Line{number, o.Show(content[start:end], 0), false})
		start = end + 1
	}
	return lines
}

// lineEnd returns the end of the line that begins at start.
func lineEnd(content []byte, start int) int {
	if size := bytes.IndexByte(content[start:], '\n'); size >= 0 {
		return start + size
	}
	return len(content)
}
