package conversation

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/history/markdown"
)

//go:embed document.css
var documentStyle string

// WriteHTML writes a conversation as an HTML page. It needs no other file, runs no script and
// loads nothing: a policy in the page forbids it.
func WriteHTML(w io.Writer, d Document) error {
	h := &htmlWriter{w: w, asker: "You"}
	hash := sha256.Sum256([]byte(documentStyle))
	h.raw(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-`,
		base64.StdEncoding.EncodeToString(hash[:]), `'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
`)
	h.element("title", "", d.Title)
	h.raw("<style>", documentStyle, "</style>\n</head>\n<body>\n<header>\n")
	h.element("h1", "", d.Title)
	h.raw("<dl>\n")
	h.property("Session", "code", d.Session)
	h.property("Agent", "span", d.Agent)
	for i, folder := range d.Folders {
		h.property(fmt.Sprint("Folder ", i), "code", folder)
	}
	h.property("Created", "span", d.Created.Local().Format(time.DateTime+" MST"))
	h.property("Last activity", "span", d.Updated.Local().Format(time.DateTime+" MST"))
	h.raw("</dl>\n</header>\n<main>\n")
	for _, e := range d.Entries {
		if h.err != nil {
			return h.err
		}
		h.entry(e)
	}
	h.raw("</main>\n</body>\n</html>\n")
	return h.err
}

// htmlWriter writes HTML. It keeps the first error. A template would link the methods of all types
// into the program, which makes it a fifth larger.
type htmlWriter struct {
	w     io.Writer
	asker string // who prompts
	err   error
}

// raw writes HTML.
func (h *htmlWriter) raw(parts ...string) {
	for _, part := range parts {
		if h.err == nil {
			_, h.err = io.WriteString(h.w, part)
		}
	}
}

// text writes text, or the value of an attribute in double quotes.
func (h *htmlWriter) text(s string) { h.raw(html.EscapeString(s)) }

// open begins an element. class may be "".
func (h *htmlWriter) open(tag, class string) {
	h.raw("<", tag)
	if class != "" {
		h.raw(` class="`)
		h.text(class)
		h.raw(`"`)
	}
	h.raw(">")
}

// element writes an element with text, and a line feed.
func (h *htmlWriter) element(tag, class, text string) {
	h.open(tag, class)
	h.text(text)
	h.raw("</", tag, ">\n")
}

// property writes what the document says about a conversation.
func (h *htmlWriter) property(name, tag, value string) {
	h.raw("<dt>", name, "</dt><dd>")
	h.open(tag, "")
	h.text(value)
	h.raw("</", tag, "></dd>\n")
}

// folded writes an element that shows what content writes when its summary is clicked on.
func (h *htmlWriter) folded(class, summary string, content func()) {
	h.open("details", class)
	h.element("summary", "", summary)
	content()
	h.raw("</details>\n")
}

func (h *htmlWriter) entry(e Entry) {
	switch e.Kind {
	case Prompt, Answer:
		speaker := "Agent"
		if e.Kind == Prompt {
			speaker = h.asker
		}
		h.open("section", string(e.Kind))
		h.element("h2", "", speaker)
		h.message(e.Text)
		for _, a := range e.Attachments {
			h.attachment(a)
		}
		h.raw("</section>\n")
	case Thought:
		h.folded("thought", "Thought", func() { h.message(e.Text) })
	case Compaction:
		h.folded("compaction", "Compaction", func() { h.message(e.Text) })
	case Note:
		h.element("p", "note", e.Text)
	case ToolCall:
		h.call(e.Call)
	case Plan:
		h.raw(`<ul class="plan">`, "\n")
		for _, s := range e.Steps {
			h.element("li", s.Status, s.Content)
		}
		h.raw("</ul>\n")
		h.message(e.Text)
	case SubagentWork:
		h.folded("subagent", "Subagent: "+e.Subagent.Name(), func() { h.subagent(e.Subagent) })
	}
}

func (h *htmlWriter) subagent(s *Subagent) {
	asker := h.asker
	h.asker = "Task"
	for _, e := range s.Entries {
		h.entry(e)
	}
	h.asker = asker
}

func (h *htmlWriter) attachment(a Attachment) {
	switch image := a.ImageURL(); {
	case image != "":
		h.raw(`<p><img src="`)
		h.text(image)
		h.raw(`" alt="attached image"></p>`, "\n")
	case a.Text != "":
		h.folded("", a.Name, func() { h.element("pre", "", a.Text) })
	default:
		h.element("p", "attached", a.Name)
	}
}

func (h *htmlWriter) call(c *Call) {
	title := c.mark() + " " + c.Heading()
	if len(c.texts())+len(c.Diffs) == 0 {
		h.element("p", "call "+c.Status, title)
		return
	}
	h.folded("call "+c.Status, title, func() {
		for _, d := range c.Diffs {
			h.element("p", "attached", d.Path)
			h.raw(`<pre class="diff">`)
			for _, line := range d.Lines() {
				tag := map[byte]string{'+': "ins", '-': "del"}[line[0]]
				h.span(Span{Tag: tag, Text: line})
			}
			h.raw("</pre>\n")
		}
		for _, r := range c.Results() {
			h.element("pre", "", r)
		}
	})
}

// message writes a message in Markdown.
func (h *htmlWriter) message(text string) {
	for _, b := range Blocks(text) {
		if b.Tag == "hr" {
			h.raw("<hr>\n")
			continue
		}
		if b.Tag == "table" {
			h.table(b)
			continue
		}
		tag, class := b.Tag, ""
		if tag == "li" {
			tag, class = "div", "item" // lists are not nested
		}
		h.open(tag, class)
		for i, line := range b.Lines {
			if i > 0 {
				h.raw("\n")
			}
			h.spans(line)
		}
		h.raw("</", tag, ">\n")
	}
}

// table writes a table whose first row is its head. Who has no mouse can scroll it.
func (h *htmlWriter) table(b Block) {
	h.raw(`<div class="table" tabindex="0" role="region" aria-label="Table"><table>`, "\n")
	for i, row := range b.Rows {
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		h.raw("<tr>")
		for _, cell := range row {
			h.open(tag, "")
			h.spans(cell)
			h.raw("</", tag, ">")
		}
		h.raw("</tr>\n")
	}
	h.raw("</table></div>\n")
}

func (h *htmlWriter) spans(list []Span) {
	for _, s := range list {
		h.span(s)
	}
}

func (h *htmlWriter) span(s Span) {
	switch s.Tag {
	case "":
		h.text(s.Text)
		return
	case "a":
		h.raw(`<a href="`)
		h.text(s.URL)
		h.raw(`" rel="noopener noreferrer">`)
	default:
		h.open(s.Tag, "")
	}
	h.text(s.Text)
	h.raw("</", s.Tag, ">")
}

// Block is a part of a message: consecutive lines of one kind.
type Block struct {
	Tag   string   `json:"tag"` // p, h3, li, blockquote, hr, pre or table
	Lines [][]Span `json:"lines"`
	// Rows are those of a table, which has no lines: the first one is its head. A row is cells.
	Rows [][][]Span `json:"rows,omitempty"`
}

// Span is text in an element, or in none if Tag is "".
type Span struct {
	Tag  string `json:"tag,omitempty"` // code, strong, em or a
	Text string `json:"text"`
	URL  string `json:"url,omitempty"` // where an "a" leads: http or https
}

// Blocks returns the blocks of a message in Markdown, as elements of HTML.
func Blocks(message string) []Block {
	var (
		list   []Block
		lines  markdown.Reader
		before string // the line before, if it can be the head of a table
	)
	ended := true // the next line begins a block
	for source := range strings.Lines(strings.Trim(message, "\n")) {
		line := lines.Line(strings.TrimSuffix(source, "\n"))
		tag := tagOf(line)
		if tag == "" {
			ended, before = true, ""
			continue
		}
		last := len(list) - 1
		if !ended && list[last].Tag == "table" && tag == "p" {
			list[last].addRow(line.Text)
			continue
		}
		if tag == "p" && before != "" && markdown.IsTable(before, line.Text) {
			list = beginTable(list, before)
			before = ""
			continue
		}
		if before = ""; tag == "p" {
			before = line.Text
		}
		alone := tag == "li" || tag == "h3" || tag == "hr"
		if !ended && !alone && list[last].Tag == tag {
			list[last].Lines = append(list[last].Lines, spans(line))
			continue
		}
		list = append(list, Block{Tag: tag, Lines: [][]Span{spans(line)}})
		ended = false
	}
	return list
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
		return "li"
	case markdown.Quote:
		return "blockquote"
	}
	if strings.TrimSpace(line.Text) == "" {
		return ""
	}
	return "p"
}

// beginTable makes the last line of the last block the head of a table.
func beginTable(list []Block, head string) []Block {
	last := len(list) - 1
	if n := len(list[last].Lines); n > 1 {
		list[last].Lines = list[last].Lines[:n-1]
	} else {
		list = list[:last]
	}
	table := Block{Tag: "table"}
	table.addRow(head)
	return append(list, table)
}

// addRow adds a row to a table. It has at most as many cells as the head.
func (b *Block) addRow(line string) {
	cells := markdown.Cells(line)
	if len(b.Rows) > 0 {
		cells = cells[:min(len(cells), len(b.Rows[0]))]
	}
	row := make([][]Span, len(cells))
	for i, cell := range cells {
		row[i] = spans(markdown.Line{Text: cell})
	}
	b.Rows = append(b.Rows, row)
}

// spans returns the spans of a line.
func spans(line markdown.Line) []Span {
	if line.Kind == markdown.Code {
		return []Span{{Text: line.Text}}
	}
	var list []Span
	for _, s := range markdown.Spans(line.Text) {
		span := Span{Text: s.Text}
		switch s.Style {
		case markdown.Monospace:
			span.Tag = "code"
		case markdown.Strong:
			span.Tag = "strong"
		case markdown.Emphasis:
			span.Tag = "em"
		case markdown.Link:
			if to, err := url.Parse(s.URL); err == nil && (to.Scheme == "https" || to.Scheme == "http") {
				span.Tag, span.URL = "a", s.URL
			} else {
				span.Text += " (" + s.URL + ")"
			}
		}
		list = append(list, span)
	}
	return list
}

// ImageURL returns an attached image as a data URL, "" if it is none that browsers show safely.
func (a Attachment) ImageURL() string {
	switch a.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if data, err := base64.StdEncoding.DecodeString(a.Data); err == nil && len(data) > 0 {
			return "data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
		}
	}
	return ""
}
