package conversation

import (
	"net/url"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/markdown"
)

// deepest is the indentation from which on items of lists are no deeper.
const deepest = 20

// blocks returns the elements of a message in Markdown.
func blocks(message string) []Node {
	var (
		b      builder
		reader markdown.Reader
		lines  []markdown.Line
	)
	for line := range strings.Lines(strings.Trim(message, "\n")) {
		lines = append(lines, reader.Line(strings.TrimSuffix(line, "\n")))
	}
	for len(lines) > 0 {
		lines = lines[b.next(lines):]
	}
	return b.top.Children
}

// builder makes elements of lines.
type builder struct {
	top     Node     // its children are the elements
	ended   bool     // the next line begins an element
	indents []int    // of the lists that are open, the outermost first
	sides   []string // the classes of the columns of a table
}

// next adds the first line to the last element, or begins one. It returns the number of lines that
// it has used: two if they begin a table.
func (b *builder) next(lines []markdown.Line) int {
	line, last := lines[0], b.top.last()
	tag, within := elements[line.Kind], last.Tag // of the element that the line can go on with
	if b.ended {
		within = ""
	}
	if b.ended = tag == "" || tag == "p" && strings.TrimSpace(line.Text) == ""; b.ended {
		return 1
	}
	content := []Node{words(line.Text)}
	if tag != "pre" {
		content = spans(line.Text)
	}
	switch {
	case tag == "ul":
		b.item(line)
	case tag == "p" && isList(within):
		b.in(len(b.indents)).add(words("\n")).add(spans(strings.TrimSpace(line.Text))...)
	case tag == "p" && within == "div":
		b.row("td", line.Text)
	case tag == "p" && len(lines) > 1 && lines[1].Kind == markdown.Paragraph &&
		markdown.IsTable(line.Text, lines[1].Text):
		b.table(line.Text, lines[1].Text)
		return 2
	case tag == within && tag != "h3" && tag != "hr":
		last.add(words("\n")).add(content...)
	default:
		b.top.add(element(tag, "", content...))
	}
	return 1
}

// elements are the elements for kinds of lines. A fence ends the element before it, as an empty
// line does.
var elements = map[markdown.Kind]string{markdown.Paragraph: "p", markdown.Heading: "h3",
	markdown.Item: "ul", markdown.Quote: "blockquote", markdown.Rule: "hr", markdown.Code: "pre"}

func isList(tag string) bool { return tag == "ul" || tag == "ol" }

// item adds an item to the list that it belongs to by its indentation.
func (b *builder) item(line markdown.Line) {
	if !isList(b.top.last().Tag) {
		b.indents = nil
	}
	indent, depth := min(len(line.Indent), deepest), len(b.indents)
	for depth > 1 && indent <= b.indents[depth-2]+1 {
		depth--
	}
	b.indents = b.indents[:depth]
	if depth > 0 && indent <= b.indents[depth-1]+1 {
		depth--
	} else {
		b.indents = append(b.indents, indent)
	}
	list := element("ul", "")
	if line.Number != "" {
		list = element("ol", "").with("start", line.Number)
	}
	in := b.in(depth)
	if in.last().Tag != list.Tag {
		in.add(list.with("dir", "auto"))
	}
	class, text := "", line.Text
	for mark, box := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if rest, isTask := strings.CutPrefix(text, mark); isTask {
			class, text = "task", box+rest
			break
		}
	}
	in.last().add(element("li", class, spans(text)...))
}

// in returns the element that has lists of a depth: the last item of the list around them.
func (b *builder) in(depth int) *Node {
	in := &b.top
	for range depth {
		in = in.last().last()
	}
	return in
}

// table begins a table with its head and what underlines it. Without a mouse the table can be
// scrolled.
func (b *builder) table(head, below string) {
	b.sides = nil
	for _, cell := range markdown.Cells(below) {
		side := ""
		if strings.HasSuffix(cell, ":") {
			side = "end"
			if strings.HasPrefix(cell, ":") {
				side = "middle"
			}
		}
		b.sides = append(b.sides, side)
	}
	b.top.add(element("div", "table", element("table", "", element("thead", ""))).
		with("tabindex", "0", "role", "region", "aria-label", "Table"))
	b.row("th", head)
	b.top.last().last().add(element("tbody", ""))
}

// row adds a row to the last part of a table. It has at most as many cells as the head.
func (b *builder) row(tag, line string) {
	row := element("tr", "")
	for i, cell := range markdown.Cells(line)[:min(len(markdown.Cells(line)), len(b.sides))] {
		row.add(element(tag, b.sides[i], spans(cell)...).with("dir", "auto"))
	}
	b.top.last().last().last().add(row)
}

// tags are the elements for the styles of spans.
var tags = map[markdown.Style]string{markdown.Monospace: "code", markdown.Strong: "strong",
	markdown.Emphasis: "em", markdown.Struck: "del"}

// spans returns the text of a line with its links and styles.
func spans(text string) (list []Node) {
	for _, s := range markdown.Spans(text) {
		to, err := url.Parse(s.URL)
		switch isLink := s.Style == markdown.Link; {
		case isLink && err == nil && (to.Scheme == "https" || to.Scheme == "http"):
			list = append(list, element("a", "", words(s.Text)).
				with("href", s.URL, "rel", "noopener noreferrer"))
		case isLink:
			list = append(list, words(s.Text+" ("+s.URL+")"))
		case s.Style == markdown.Plain:
			list = append(list, words(s.Text))
		default:
			list = append(list, element(tags[s.Style], "", words(s.Text)))
		}
	}
	return list
}
