package terminal

import (
	"strings"

	syntax "github.com/acp-agent/acp-agent/internal/history/markdown"
)

// Style is a list of parameters of the escape sequence that styles text on a terminal.
type Style []string

const (
	Bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	red       = "31"
	green     = "32"
	Cyan      = "36"
)

// Apply returns s in the style.
func (s Style) Apply(text string) string {
	if len(s) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(s, ";") + "m" + text + "\x1b[0m"
}

// markdown renders Markdown that arrives in pieces for a terminal. It renders whole lines, and
// wraps those that are not code or rows of a table between words.
type markdown struct {
	width int  // of the terminal, 0 not to wrap
	plain bool // leave the text as it is, because the terminal has no styles

	pending string // the beginning of a line
	lines   syntax.Reader
}

// add adds a piece and returns the lines that it completes.
func (m *markdown) add(piece string) string {
	m.pending += piece
	var b strings.Builder
	for {
		line, rest, ended := strings.Cut(m.pending, "\n")
		if !ended {
			if len(m.pending) > syntax.MaxLine {
				b.WriteString(m.pending)
				m.pending = ""
			}
			return b.String()
		}
		m.pending = rest
		b.WriteString(m.line(line))
	}
}

// rest ends the text, and returns the line that is not complete yet as if it were. Code that was
// not ended ends with the text.
func (m *markdown) rest() (rendered string) {
	if m.pending != "" {
		rendered = m.line(m.pending)
	}
	m.pending, m.lines = "", syntax.Reader{}
	return rendered
}

// line renders a line, with its line feed.
func (m *markdown) line(line string) string {
	l := m.lines.Line(line)
	shown, hang := m.render(l, line)
	isTable := l.Kind == syntax.Paragraph && strings.HasPrefix(strings.TrimSpace(line), "|")
	switch {
	case l.Kind == syntax.Fence && !m.plain:
		return ""
	case l.Kind == syntax.Fence, l.Kind == syntax.Code, isTable:
		return shown + "\n"
	}
	return wrap(shown, hang, m.width) + "\n"
}

// render renders a line, and returns what its continuation on the next line begins with.
func (m *markdown) render(l syntax.Line, line string) (shown, hang string) {
	indent := indentOf(line)
	switch {
	case l.Kind == syntax.Item:
		indent += "  "
	case l.Kind == syntax.Quote && m.plain:
		indent += "> "
	}
	if m.plain {
		return line, indent
	}
	switch l.Kind {
	case syntax.Code:
		return "  " + Style{Cyan}.Apply(l.Text), ""
	case syntax.Rule:
		return Style{dim}.Apply(strings.Repeat("─", 20)), ""
	case syntax.Heading:
		return Style{Bold, underline}.Apply(syntax.Text(l.Text)), ""
	case syntax.Item:
		mark := "•"
		if l.Number != "" {
			mark = l.Number + "."
		}
		return l.Indent + mark + " " + inline(l.Text), indent
	case syntax.Quote:
		bar := Style{dim}.Apply("│ ")
		return bar + inline(l.Text), bar
	}
	return inline(l.Text), indent
}

// inline renders emphasis, code and links in a line.
func inline(line string) string {
	var b strings.Builder
	for _, s := range syntax.Spans(line) {
		switch s.Style {
		case syntax.Monospace:
			b.WriteString(Style{Cyan}.Apply(s.Text))
		case syntax.Strong:
			b.WriteString(Style{Bold}.Apply(s.Text))
		case syntax.Emphasis:
			b.WriteString(Style{italic}.Apply(s.Text))
		case syntax.Link:
			b.WriteString(Style{underline}.Apply(s.Text) + " (" + s.URL + ")")
		default:
			b.WriteString(s.Text)
		}
	}
	return b.String()
}
