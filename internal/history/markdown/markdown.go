// Package markdown reads the Markdown that language models write: headings, emphasis, code, lists,
// quotations, rules and links. It reads a line at a time, so that text can be shown while it
// arrives. It leaves everything that it does not know as it is.
package markdown

import (
	"regexp"
	"strings"
	"sync"
)

// MaxLine is the length of the longest line that is read as Markdown, in bytes, because the time to
// read a line is quadratic in its length. Longer lines are text.
const MaxLine = 8 << 10

// Kind says what a line is.
type Kind int

// The kinds of lines.
const (
	Paragraph Kind = iota
	Heading
	Item // of a list; Indent says how deep
	Quote
	Rule  // has no text
	Code  // its text has no marks
	Fence // begins or ends a block of code; has no text
)

// Line is a line without what marks its kind.
type Line struct {
	Kind   Kind
	Indent string // of an Item: the blanks before it
	Number string // of an Item in a numbered list, otherwise ""
	Text   string
}

// Reader reads lines. The zero value is at the beginning of a text.
type Reader struct {
	fence string // what ends the block of code that is open, "" outside of code

	continues, inText bool // the last line is a paragraph or an item; it is a paragraph
}

// Line reads the next line, which has no line feed. In a paragraph, which may have a number at the
// beginning of a line, only the number 1 begins a list.
func (r *Reader) Line(line string) Line {
	l := r.read(line)
	isText := l.Kind == Paragraph && strings.TrimSpace(line) != ""
	if l.Number != "" && l.Number != "1" && r.inText {
		isText, l = true, Line{Text: line}
	}
	r.inText = isText && (r.inText || !r.continues)
	r.continues = isText || l.Kind == Item
	return l
}

func (r *Reader) read(line string) Line {
	if r.fence != "" {
		if end := strings.TrimSpace(line); strings.HasPrefix(end, r.fence) &&
			strings.Trim(end, r.fence[:1]) == "" {
			r.fence = ""
			return Line{Kind: Fence}
		}
		return Line{Kind: Code, Text: line}
	}
	start := strings.TrimLeft(line, " ")
	// Most lines are plain text, and to match an expression takes long.
	if len(line) > MaxLine || start == "" || strings.IndexByte("`~#-*+>_0123456789", start[0]) < 0 {
		return Line{Text: line}
	}
	s := syntax()
	if open := s.fence.FindStringSubmatch(line); open != nil {
		r.fence = open[1]
		return Line{Kind: Fence}
	}
	if s.rule.MatchString(line) {
		return Line{Kind: Rule}
	}
	if heading := s.heading.FindStringSubmatch(line); heading != nil {
		return Line{Kind: Heading, Text: heading[1]}
	}
	if item := s.item.FindStringSubmatch(line); item != nil {
		return Line{Kind: Item, Indent: item[1], Number: item[2], Text: item[3]}
	}
	if quote := s.quote.FindStringSubmatch(line); quote != nil {
		return Line{Kind: Quote, Text: quote[1]}
	}
	return Line{Text: line}
}

// Open returns the fence that ends the block of code that the last line is in, "" if it is in none.
func (r *Reader) Open() string { return r.fence }

// Style is how a part of a line is shown.
type Style int

// The styles.
const (
	Plain Style = iota
	Monospace
	Strong
	Emphasis
	Struck
	Link // to the span's URL
)

// Span is a part of a line.
type Span struct {
	Style Style
	Text  string
	URL   string // of a Link
}

// Spans splits the text of a line that is not code. A span inside another one has the style of the
// outer one.
func Spans(text string) []Span {
	if len(text) > MaxLine {
		return []Span{{Text: text}}
	}
	var spans []Span
	add := func(s Span) {
		if last := len(spans) - 1; s.Style == Plain && last >= 0 && spans[last].Style == Plain {
			spans[last].Text += s.Text
		} else if s.Text != "" {
			spans = append(spans, s)
		}
	}
	end := 0
	var marked [][]int
	if strings.ContainsAny(text, "`*_[~\\") {
		marked = syntax().inline.FindAllStringSubmatchIndex(text, -1)
	}
	for _, at := range marked {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		add(Span{Text: text[end:at[0]]})
		end = at[1]
		switch {
		case group(1)+group(2) != "":
			add(Span{Style: Monospace, Text: group(1) + group(2)})
		case group(3)+group(4) != "":
			add(Span{Style: Strong, Text: Text(group(3) + group(4))})
		case group(5)+group(6) != "":
			add(Span{Style: Emphasis, Text: Text(group(5) + group(6))})
		case group(7) != "":
			add(Span{Style: Link, Text: group(7), URL: group(8)})
		case group(9) != "":
			add(Span{Style: Struck, Text: Text(group(9))})
		default:
			add(Span{Text: group(10)})
		}
	}
	add(Span{Text: text[end:]})
	return spans
}

// Text returns the text of a line without its marks. A link's URL follows its text.
func Text(text string) string {
	var b strings.Builder
	for _, s := range Spans(text) {
		b.WriteString(s.Text)
		if s.Style == Link {
			b.WriteString(" (" + s.URL + ")")
		}
	}
	return b.String()
}

// syntaxes are the expressions of what a line can be.
type syntaxes struct{ fence, heading, item, quote, rule, inline *regexp.Regexp }

// syntax is compiled on first use to keep the start of the program fast.
var syntax = sync.OnceValue(func() syntaxes {
	return syntaxes{
		fence:   regexp.MustCompile("^ {0,3}(```+|~~~+)[^`]*$"),
		heading: regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`),
		item:    regexp.MustCompile(`^( *)(?:[-*+]|(\d{1,9})[.)]) +(.*)$`),
		quote:   regexp.MustCompile(`^> ?(.*)$`),
		rule:    regexp.MustCompile(`^ {0,3}(-( *-){2,}|\*( *\*){2,}|_( *_){2,}) *$`),
		inline: regexp.MustCompile("``+ ?(.+?) ?``+|`([^`]+)`|" + // code
			`\*\*(\S(?:.*?\S)?)\*\*|__(\S(?:.*?\S)?)__\b|` + // strong
			`\*([^\s*](?:[^*]*[^\s*])?)\*|\b_([^\s_](?:[^_]*[^\s_])?)_\b|` + // emphasis
			`\[([^\]]+)\]\(([^)\s]+)\)|` + // link
			`~~(\S(?:.*?\S)?)~~|` + // struck out
			`\\([[:punct:]])`),
	}
})

// IsTable reports whether a line and the one below it are the head of a table and what underlines
// it.
func IsTable(head, below string) bool {
	if len(head) > MaxLine || len(below) > MaxLine || !strings.Contains(below, "|") ||
		strings.Trim(below, "|:- \t") != "" {
		return false
	}
	cells := Cells(below)
	for _, cell := range cells {
		if strings.Trim(strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":"), "-") != "" ||
			!strings.Contains(cell, "-") {
			return false
		}
	}
	return strings.Contains(head, "|") && len(Cells(head)) == len(cells)
}

// Cells returns the cells of a row of a table. A bar behind a backslash is part of a cell.
func Cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	if strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`) {
		row = row[:len(row)-1]
	}
	var (
		cells []string
		cell  strings.Builder
	)
	for i := range len(row) {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
		case row[i] != '|' || i > 0 && row[i-1] == '\\':
			cell.WriteByte(row[i])
		default:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}
