package tools

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

type searchInput struct {
	Pattern    string `json:"pattern" jsonschema:"RE2 expression for one line" min:"1"`
	Path       string `json:"path,omitempty" jsonschema:"a file or directory, {path}; {every}"`
	Glob       string `json:"glob,omitempty" jsonschema:"as in find_files"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"pattern is plain text"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"ignore case"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match" min:"0" max:"20"`
	fileFilter
}

func (s *service) search(ctx context.Context, in searchInput) (Result, error) {
	pattern, err := newPattern(in.Pattern, in.Literal, in.IgnoreCase)
	if err != nil {
		return Result{}, err
	}
	p, files := page{bytes: s.limits.bytes, unit: "matches", most: s.limits.matches}, 0
	var out Result
	w, err := s.walk(ctx, in.Path, in.Glob, in.fileFilter,
		&query{pattern, in.Context, s.limits}, func(f found) *truncation {
			at, last := locate(f.ref()), 0
			for _, line := range f.lines {
				n, sign := 0, "-"
				if line.match {
					n, sign = 1, ":"
				}
				part := fmt.Sprintf("%d%s%s\n", line.number, sign, line.text)
				switch {
				case last == 0 && files > 0:
					part = fmt.Sprintf("\n%s\n%s", at, part)
				case last == 0:
					part = fmt.Sprintf("%s\n%s", at, part)
				case in.Context > 0 && line.number > last+1:
					part = "--\n" + part
				}
				cut := p.add(n, fmt.Sprintf("%s:%d", at.Path, line.number), part)
				if cut != nil {
					return cut
				}
				if last == 0 {
					files++
				}
				last = line.number
				out.Found = append(out.Found, FoundAt{at.Path, line.number})
			}
			return nil
		})
	notes := w.notes(p.last, "Use a narrower pattern, a glob, or a path.")
	if files == 0 {
		out.Text = "No line matches; " + w.none(in.Glob) + notes
		return out, err
	}
	out.Text = fmt.Sprintf("%s\n%s in %s, visited %d\n%s", p.String(),
		text.Count(p.count, "matching line", "matching lines"),
		text.Count(files, "file", "files"), w.Visited, notes)
	return out, err
}

// match is a line that a pattern matches.
type match struct {
	number int // from 1
	start  int // of the line in the text
	at     int // offset of the match in the line
}

// line is a line that a search returns.
type line struct {
	number int // from 1
	text   string
	match  bool // false for a line of context
}

// query says what to search files for, and how much of them to return. It is safe for concurrent
// use. Limits are the bytes and the matches of one file, and the bytes of a line.
type query struct {
	pattern *pattern
	context int // lines before and after each match
	limits
}

// matches returns the matches of a text. The error is that of ctx, or errBinary for a text with
// matches that is not UTF-8.
func (q *query) matches(ctx context.Context, content []byte) (hits []match, err error) {
	err = q.pattern.find(ctx, content, func(m match) bool {
		hits = append(hits, m)
		return len(hits) <= q.limits.matches // one more than is shown: are there others?
	})
	if err == nil && len(hits) > 0 && !utf8.Valid(content) {
		err = errBinary
	}
	return hits, err
}

// lines returns the lines of matches with their context, as far as there is room for them.
func (q *query) lines(content []byte, hits []match) (all []line) {
	last, size := 0, 0 // the number of the last line, and the bytes of all
	for i, hit := range hits {
		if size > q.bytes {
			break
		}
		start, number := hit.start, hit.number
		for number > max(last+1, hit.number-q.context) && start > 0 {
			start = bytes.LastIndexByte(content[:start-1], '\n') + 1
			number--
		}
		until := hit.number + q.context
		if i+1 < len(hits) {
			until = min(until, hits[i+1].number-1)
		}
		for ; number <= until && start < len(content); number++ {
			end, at := lineEnd(content, start), 0
			if number == hit.number {
				at = hit.at
			}
			text := q.excerpt(content[start:end], at)
			all = append(all, line{number, text, number == hit.number})
			size += len(text)
			last, start = number, end+1
		}
	}
	return all
}

// excerpt returns a line without its line ending, or the part of a long line around the match at
// offset at, 0 for a line of context.
func (q *query) excerpt(line []byte, at int) string {
	content := strings.TrimSuffix(string(line), "\r")
	limit := q.line
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

// lineEnd returns the end of the line that begins at start.
func lineEnd(content []byte, start int) int {
	if size := bytes.IndexByte(content[start:], '\n'); size >= 0 {
		return start + size
	}
	return len(content)
}
