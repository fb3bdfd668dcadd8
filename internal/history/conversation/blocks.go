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
		b     builder
		lines markdown.Reader
	)
	for line := range strings.Lines(strings.Trim(message, "\n")) {
		b.line(lines.Line(strings.TrimSuffix(line, "\n")))
	}
	return b.top.Children
}

// builder makes elements of lines.
type builder struct {
	top     Node     // its children are the elements
	ended   bool     // the next line begins an element
	indents []int    // of the lists that are open, the outermost first
	before  string   // the line before, if it can be the head of a table
	begin   int      // the child of its element that begins this line
	sides   []string // the classes of the columns of a table
}

// line adds a line to the last element, or begins one.
func (b *builder) line(line markdown.Line) {
	tag, last := elements[line.Kind], b.top.last()
	content := []Node{words(line.Text)}
	switch {
	case tag == "p" && strings.TrimSpace(line.Text) == "":
		tag = ""
	case tag != "pre":
		content = spans(line.Text)
	}
	within := last.Tag // of the element that the line can go on with
	if b.ended {
		within = ""
	}
	before := b.before
	b.before = ""
	switch {
	case tag == "":
		b.ended = true
		return
	case tag == "ul":
		b.item(line)
	case tag == "p" && isList(within):
		b.in(len(b.indents)).add(words("\n")).add(spans(strings.TrimSpace(line.Text))...)
	case tag == "p" && within == "div":
		b.row("td", line.Text)
	case tag == "p" && before != "" && markdown.IsTable(before, line.Text):
		b.table(before, line.Text)
	case tag == within && tag != "h3" && tag != "hr":
		b.before, b.begin = line.Text, len(last.Children)
		last.add(words("\n")).add(content...)
	default:
		b.before, b.begin = line.Text, 0
		b.top.add(element(tag, "", content...))
	}
	if tag != "p" {
		b.before = ""
	}
	b.ended = false
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

// table makes the line before the head of a table, with what underlines it. Who has no mouse can
// scroll the table.
func (b *builder) table(head, below string) {
	paragraph := b.top.last()
	paragraph.Children = paragraph.Children[:b.begin]
	if b.begin == 0 {
		b.top.Children = b.top.Children[:len(b.top.Children)-1]
	}
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
