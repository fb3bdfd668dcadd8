package conversation

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"time"
)

// Style is the style of a conversation, which exported pages contain.
//
//go:embed conversation.css
var Style string

// WriteHTML writes a conversation as an HTML page. It needs no other file, runs no script and
// loads nothing: a policy in the page forbids it.
func WriteHTML(w io.Writer, d Document) error {
	h := htmlWriter{bufio.NewWriter(w)}
	hash := sha256.Sum256([]byte(Style))
	h.raw(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-%s'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
`, base64.StdEncoding.EncodeToString(hash[:]))
	h.node(element("title", "", words(d.Title)))
	h.raw("\n<style>%s</style>\n</head>\n<body class=\"document\">\n", Style)
	properties := element("dl", "")
	property := func(name, tag, value string) {
		properties.Children = append(properties.Children, element("dt", "", words(name)),
			element("dd", "", element(tag, "", words(value))))
	}
	property("Session", "code", d.Session)
	property("Agent", "span", d.Agent)
	for i, folder := range d.Folders {
		property(fmt.Sprint("Folder ", i), "code", folder)
	}
	property("Created", "span", d.Created.Local().Format(time.DateTime+" MST"))
	property("Last activity", "span", d.Updated.Local().Format(time.DateTime+" MST"))
	h.node(element("header", "", element("h1", "", words(d.Title)), properties))
	h.raw("\n<main>\n")
	for _, e := range d.Entries {
		h.node(view{asker: "You"}.entry(e))
		h.raw("\n")
	}
	h.raw("</main>\n</body>\n</html>\n")
	return h.Flush()
}

// Node is an element of a page with its children, or text if it has no tag. Pages in a browser make
// elements of its JSON, and exported pages contain it as HTML, so both show the same.
type Node struct {
	Tag        string   `json:"tag,omitempty"`
	Text       string   `json:"text,omitempty"`
	Attributes []string `json:"attributes,omitempty"` // names and values in turn
	Children   []Node   `json:"children,omitempty"`
}

// element returns an element. class may be "".
func element(tag, class string, children ...Node) Node {
	n := Node{Tag: tag, Children: children}
	if class != "" {
		n.Attributes = []string{"class", class}
	}
	return n
}

// words returns a text.
func words(s string) Node { return Node{Text: s} }

// add adds children.
func (n *Node) add(children ...Node) *Node {
	n.Children = append(n.Children, children...)
	return n
}

// last returns the last child, or an empty text without children.
func (n *Node) last() *Node {
	if len(n.Children) == 0 {
		return &Node{}
	}
	return &n.Children[len(n.Children)-1]
}

// with returns n with more attributes.
func (n Node) with(attributes ...string) Node {
	n.Attributes = append(n.Attributes, attributes...)
	return n
}

// htmlWriter writes HTML, and keeps the first error. A template would link the methods of all types
// into the program, which makes it a fifth larger.
type htmlWriter struct{ *bufio.Writer }

// raw writes HTML.
func (h htmlWriter) raw(format string, args ...any) { _, _ = fmt.Fprintf(h, format, args...) }

// node writes an element or a text.
func (h htmlWriter) node(n Node) {
	if n.Tag == "" {
		h.raw("%s", html.EscapeString(n.Text))
		return
	}
	h.raw("<%s", n.Tag)
	for i := 0; i < len(n.Attributes); i += 2 {
		h.raw(` %s="%s"`, n.Attributes[i], html.EscapeString(n.Attributes[i+1]))
	}
	h.raw(">")
	for _, child := range n.Children {
		h.node(child)
	}
	if n.Tag != "hr" && n.Tag != "img" {
		h.raw("</%s>", n.Tag)
	}
}
