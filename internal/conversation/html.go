package conversation

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/markdown"
)

var (
	//go:embed document.html.tmpl
	documentTemplate string
	//go:embed document.css
	documentStyle string
)

// WriteHTML writes a conversation as an HTML page. It needs no other file, runs no script and
// loads nothing: a policy in the page forbids it.
func WriteHTML(w io.Writer, d Document) error {
	page, err := template.New("").Funcs(template.FuncMap{
		"blocks": blocks, "image": image, "date": func(t time.Time) string {
			return t.Format(time.DateTime + " MST")
		},
		"mark": (*Call).mark, "lines": Diff.lines,
	}).Parse(documentTemplate)
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(documentStyle))
	return page.Execute(w, struct {
		Document
		Style     template.CSS
		StyleHash string
	}{d, template.CSS(documentStyle), base64.StdEncoding.EncodeToString(hash[:])})
}

// htmlBlock is a part of a message: consecutive lines of one kind.
type htmlBlock struct {
	Tag   string // p, h3, li, blockquote, hr or pre
	Lines []htmlLine
}

type htmlLine []htmlSpan

// htmlSpan is text in an element, or in none if Tag is "". URL says where an "a" leads.
type htmlSpan struct{ Tag, Text, URL string }

// blocks returns the blocks of a message.
func blocks(message string) []htmlBlock {
	var list []htmlBlock
	var lines markdown.Reader
	ended := true // the next line begins a block
	for source := range strings.Lines(strings.Trim(message, "\n")) {
		line := lines.Line(strings.TrimSuffix(source, "\n"))
		tag := tagOf(line)
		if tag == "" {
			ended = true
			continue
		}
		alone := tag == "li" || tag == "h3" || tag == "hr"
		if last := len(list) - 1; !ended && !alone && list[last].Tag == tag {
			list[last].Lines = append(list[last].Lines, spans(line))
			continue
		}
		list = append(list, htmlBlock{Tag: tag, Lines: []htmlLine{spans(line)}})
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
	switch {
	case strings.TrimSpace(line.Text) == "":
		return ""
	case strings.HasPrefix(line.Text, "|"): // a table
		return "pre"
	}
	return "p"
}

// spans returns the spans of a line.
func spans(line markdown.Line) htmlLine {
	if line.Kind == markdown.Code {
		return htmlLine{{Text: line.Text}}
	}
	var list htmlLine
	for _, s := range markdown.Spans(line.Text) {
		span := htmlSpan{Text: s.Text}
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

// image returns an attached image as a data URL, "" if it is none that browsers show safely.
func image(a Attachment) template.URL {
	switch a.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if data, err := base64.StdEncoding.DecodeString(a.Data); err == nil && len(data) > 0 {
			return template.URL("data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data))
		}
	}
	return ""
}
