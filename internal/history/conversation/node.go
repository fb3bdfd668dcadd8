package conversation

import (
	"bufio"
	"fmt"
	"html"
)

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
