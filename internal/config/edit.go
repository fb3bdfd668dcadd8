package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// Text is a configuration file that is being changed. Comments and all other parts stay as
// they are.
type Text struct {
	root   hujson.Value
	marked bool   // whether the file begins with a byte order mark
	unit   string // of indentation
	ending string // of lines
	err    error  // the first value that could not be encoded
}

const byteOrderMark = "\uFEFF"

// ParseText parses a file that [Parse] accepts. A file without text is an empty object.
func ParseText(text []byte) (*Text, error) {
	text, marked := bytes.CutPrefix(text, []byte(byteOrderMark))
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	c := &Text{root: root, marked: marked, unit: "  ", ending: "\n"}
	if line, _, _ := bytes.Cut(text, []byte("\n")); bytes.HasSuffix(line, []byte("\r")) {
		c.ending = "\r\n"
	}
	if object, ok := root.Value.(*hujson.Object); ok && len(object.Members) > 0 {
		before := string(object.Members[0].Name.BeforeExtra)
		indent := before[strings.LastIndexByte(before, '\n')+1:]
		if indent != "" && indent != before && strings.Trim(indent, " \t") == "" {
			c.unit = indent
		}
	}
	return c, err
}

// Text returns the file.
func (c *Text) Text() ([]byte, error) {
	text := c.root.Pack()
	if c.marked {
		text = append([]byte(byteOrderMark), text...)
	}
	return text, c.err
}

// Set sets the value at a path of keys and indexes. It creates the objects that are missing.
func (c *Text) Set(value any, path ...string) {
	at := &c.root
	for depth, name := range path {
		next := at.Find(pointer(name))
		if next == nil {
			object, ok := at.Value.(*hujson.Object)
			if !ok { // null
				object = &hujson.Object{}
				at.Value = object
			}
			for i := len(path) - 1; i > depth; i-- {
				value = map[string]any{path[i]: value}
			}
			c.addMember(object, name, value, depth+1)
			return
		}
		at = next
	}
	at.Value = c.encode(value, len(path), true)
}

// Append adds a value to the array at a path of keys and indexes. It creates what is missing.
func (c *Text) Append(value any, path ...string) {
	at := c.root.Find(pointer(path...))
	if at == nil || at.Value.Kind() != '[' {
		c.Set([]any{value}, path...)
		return
	}
	array, depth := at.Value.(*hujson.Array), len(path)+1
	var first *hujson.Value
	if len(array.Elements) > 0 {
		first = &array.Elements[0]
	}
	before, spread := c.room(first, &array.AfterExtra, depth)
	array.Elements = append(array.Elements, hujson.Value{
		BeforeExtra: before, Value: c.encode(value, depth, spread)})
}

// pointer returns a path as a JSON pointer.
func pointer(path ...string) (pointer string) {
	for _, name := range path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return pointer
}

// addMember adds a member to the end of an object.
func (c *Text) addMember(object *hujson.Object, name string, value any, depth int) {
	var first *hujson.Value
	if len(object.Members) > 0 {
		first = &object.Members[0].Name
	}
	before, spread := c.room(first, &object.AfterExtra, depth)
	object.Members = append(object.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: c.encode(value, depth, spread)},
	})
}

// room returns the text before a new last element, and whether the element gets its own lines:
// unless the existing elements, beginning with first, are all on one line. Comments after the
// last existing element stay there.
func (c *Text) room(
	first *hujson.Value, after *hujson.Extra, depth int,
) (before hujson.Extra, spread bool) {
	comments := bytes.TrimRight(*after, " \t\r\n")
	if depth > 1 && first != nil && len(comments) == 0 &&
		!bytes.Contains(first.BeforeExtra, []byte("\n")) {
		return hujson.Extra(" "), false
	}
	before = append(bytes.Clone(comments), c.ending+strings.Repeat(c.unit, depth)...)
	*after = hujson.Extra(c.ending + strings.Repeat(c.unit, depth-1))
	return before, true
}

// encode returns a value for this depth of the file, on several lines if spread is set.
func (c *Text) encode(value any, depth int, spread bool) hujson.ValueTrimmed {
	layout := json.JoinOptions(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if spread {
		layout = json.JoinOptions(jsontext.WithIndent(c.unit),
			jsontext.WithIndentPrefix(strings.Repeat(c.unit, depth)))
	}
	text, err := json.Marshal(value, json.Deterministic(true), layout)
	if err != nil {
		c.err = err
		return hujson.Literal("null")
	}
	parsed, err := hujson.Parse(bytes.ReplaceAll(text, []byte("\n"), []byte(c.ending)))
	c.err = errors.Join(c.err, err)
	return parsed.Value
}
