package tools

import (
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
