package conversation

import (
	"net/url"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/markdown"
)

// passage is a part of a message: consecutive lines of one kind.
type passage struct {
	tag   string // p, h3, ul for any list, blockquote, hr, pre or table
	lines [][]Node
	items []item
	rows  [][][]Node // of a table: the first one is its head
	sides []string   // of a table: the classes of its columns
}

// item is an item of a list.
type item struct {
	indent int
	number string // "" without one
	isTask bool
	lines  [][]Node
}

// deepest is the indentation from which on items are no deeper.
const deepest = 20

// Blocks returns the elements of a message in Markdown.
func Blocks(message string) (nodes []Node) {
	var (
		list   []passage
		lines  markdown.Reader
		before string // the line before, if it can be the head of a table
	)
	ended := true // the next line begins a passage
	for source := range strings.Lines(strings.Trim(message, "\n")) {
		line := lines.Line(strings.TrimSuffix(source, "\n"))
		last := len(list) - 1
		one, isItem := itemOf(line, ended || list[last].tag == "ul")
		tag := tagOf(line)
		switch {
		case tag == "":
			ended, before = true, ""
			continue
		case isItem && last >= 0 && list[last].tag == "ul":
			list[last].items = append(list[last].items, one)
		case isItem:
			list = append(list, passage{tag: "ul", items: []item{one}})
		case !ended && list[last].tag == "ul" && tag == "p":
			items := list[last].items
			items[len(items)-1].add(spans(strings.TrimSpace(line.Text)))
			continue
		case !ended && list[last].tag == "table" && tag == "p":
			list[last].addRow(line.Text)
			continue
		case tag == "p" && before != "" && markdown.IsTable(before, line.Text):
			list = beginTable(list, before, line.Text)
			before = ""
			continue
		case !ended && tag != "h3" && tag != "hr" && list[last].tag == tag:
			list[last].lines = append(list[last].lines, shown(line))
		default:
			list = append(list, passage{tag: tag, lines: [][]Node{shown(line)}})
		}
		if ended, before = false, ""; tag == "p" && !isItem {
			before = line.Text
		}
	}
	for _, b := range list {
		nodes = append(nodes, b.nodes()...)
	}
	return nodes
}

// tagOf returns the element for a line, "" if it only ends the element before.
func tagOf(line markdown.Line) string {
	switch line.Kind {
	case markdown.Fence:
		return ""
	case markdown.Code:
		return "pre"
	case markdown.Rule:
		return "hr"
	case markdown.Heading:
		return "h3"
	case markdown.Item:
		return "ul"
	case markdown.Quote:
		return "blockquote"
	}
	if strings.TrimSpace(line.Text) == "" {
		return ""
	}
	return "p"
}

// itemOf returns the item of a list that a line begins. In a paragraph, which may have a number at
// the beginning of a line, only the number 1 begins a list.
func itemOf(line markdown.Line, mayBegin bool) (i item, ok bool) {
	text := line.Text
	switch line.Kind {
	case markdown.Item:
		i.indent = len(line.Indent)
	case markdown.Paragraph:
		var indent string
		indent, i.number, text, ok = markdown.Numbered(line.Text)
		if !ok || !mayBegin && i.number != "1" {
			return item{}, false
		}
		i.indent = len(indent)
	default:
		return item{}, false
	}
	i.indent = min(i.indent, deepest)
	for mark, box := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if rest, isTask := strings.CutPrefix(text, mark); isTask {
			i.isTask, text = true, box+rest
			break
		}
	}
	i.add(spans(text))
	return i, true
}

// add adds a line to an item.
func (i *item) add(line []Node) { i.lines = append(i.lines, line) }

// beginTable makes the last line of the last passage the head of a table, with what underlines it.
func beginTable(list []passage, head, below string) []passage {
	last := len(list) - 1
	if n := len(list[last].lines); n > 1 {
		list[last].lines = list[last].lines[:n-1]
	} else {
		list = list[:last]
	}
	table := passage{tag: "table"}
	for _, cell := range markdown.Cells(below) {
		side := ""
		if strings.HasSuffix(cell, ":") {
			side = "end"
			if strings.HasPrefix(cell, ":") {
				side = "middle"
			}
		}
		table.sides = append(table.sides, side)
	}
	table.addRow(head)
	return append(list, table)
}

// addRow adds a row to a table. It has at most as many cells as the head.
func (b *passage) addRow(line string) {
	cells := markdown.Cells(line)
	cells = cells[:min(len(cells), len(b.sides))]
	row := make([][]Node, len(cells))
	for i, cell := range cells {
		row[i] = spans(cell)
	}
	b.rows = append(b.rows, row)
}

// nodes returns the elements of a passage.
func (b *passage) nodes() []Node {
	switch b.tag {
	case "ul":
		return lists(b.items)
	case "table":
		return []Node{b.table()}
	}
	return []Node{element(b.tag, "", joined(b.lines)...)}
}

// joined returns lines as one text.
func joined(lines [][]Node) (all []Node) {
	for i, line := range lines {
		if i > 0 {
			all = append(all, words("\n"))
		}
		all = append(all, line...)
	}
	return all
}

// lists returns the lists that items make. Items that are indented further are lists in an item.
func lists(items []item) (all []Node) {
	for len(items) > 0 {
		first := items[0]
		list := element("ul", "")
		if first.number != "" {
			list = element("ol", "").with("start", first.number)
		}
		list = list.with("dir", "auto")
		for len(items) > 0 && items[0].indent <= first.indent+1 &&
			(items[0].number == "") == (first.number == "") {
			inner := 1
			for inner < len(items) && items[inner].indent > items[0].indent+1 {
				inner++
			}
			class := ""
			if items[0].isTask {
				class = "task"
			}
			content := append(joined(items[0].lines), lists(items[1:inner])...)
			list.Children = append(list.Children, element("li", class, content...))
			items = items[inner:]
		}
		all = append(all, list)
	}
	return all
}

// table returns a table. Who has no mouse can scroll it.
func (b *passage) table() Node {
	parts := []Node{element("thead", ""), element("tbody", "")}
	for i, row := range b.rows {
		tag, part := "td", &parts[1]
		if i == 0 {
			tag, part = "th", &parts[0]
		}
		tr := element("tr", "")
		for j, cell := range row {
			tr.Children = append(tr.Children, element(tag, b.sides[j], cell...).with("dir", "auto"))
		}
		part.Children = append(part.Children, tr)
	}
	return element("div", "table", element("table", "", parts...)).
		with("tabindex", "0", "role", "region", "aria-label", "Table")
}

// shown returns what a line of a passage contains.
func shown(line markdown.Line) []Node {
	if line.Kind == markdown.Code {
		return []Node{words(line.Text)}
	}
	return spans(line.Text)
}

// tags are the elements for the styles of spans.
var tags = map[markdown.Style]string{markdown.Monospace: "code", markdown.Strong: "strong",
	markdown.Emphasis: "em", markdown.Struck: "del"}

// spans returns the text of a line with its links and styles.
func spans(text string) (list []Node) {
	for _, s := range markdown.Spans(text) {
		if s.Style != markdown.Link {
			list = append(list, element(tags[s.Style], "", words(s.Text)))
			if s.Style == markdown.Plain {
				list[len(list)-1] = words(s.Text)
			}
			continue
		}
		if to, err := url.Parse(s.URL); err == nil && (to.Scheme == "https" || to.Scheme == "http") {
			list = append(list, element("a", "", words(s.Text)).
				with("href", s.URL, "rel", "noopener noreferrer"))
		} else {
			list = append(list, words(s.Text+" ("+s.URL+")"))
		}
	}
	return list
}
