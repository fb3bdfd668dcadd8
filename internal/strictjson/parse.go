package strictjson

import (
	"bytes"
	"encoding/json"
)

// Parse combines [ParseObject] and [Check] in one pass. Objects and arrays that shape describes are parsed along the way, so that
// reading them does not scan them again.
func Parse(raw json.RawMessage, shape *Shape) (Object, []Violation, error) {
	if isAbsent(raw) {
		return Object{}, nil, nil
	}
	c := checker{scanner: newScanner(raw)}
	if c.dec.PeekKind() != '{' {
		_, err := ParseObject(raw)
		return Object{}, nil, err
	}
	o, err := c.parseObject(shape, place{})
	if err == nil {
		err = c.end()
	}
	if err != nil {
		return Object{}, nil, err
	}
	return o, c.found, nil
}

// parsed holds the contents of a value that Parse has read: at most one of them is set.
type parsed struct {
	object *Object
	items  []Field
}

func (c *checker) parseObject(shape *Shape, at place) (Object, error) {
	o := Object{at: at, raw: c.raw, members: make([]member, 0, 8)}
	if err := c.delim(); err != nil {
		return o, err
	}
	var seen nameSet
	for c.dec.PeekKind() != '}' {
		start, end, err := c.scanner.value()
		if err != nil {
			return o, err
		}
		m := member{name: name(c.raw[start:end]), start: start}
		key := m.name.text()
		c.path = append(c.path, step{name: key})
		c.checkName(&seen, key, shape)
		inner := shape.field(key)
		var below place
		if inner != nil {
			below = at.member(string(key))
		}
		if m.value, m.end, m.parsed, err = c.parseValue(inner, below); err != nil {
			return o, err
		}
		c.path = c.path[:len(c.path)-1]
		o.members = append(o.members, m)
	}
	return o, c.delim()
}

// parseValue reads a value and returns its position. What shape describes is also parsed.
func (c *checker) parseValue(shape *Shape, at place) (start, end int, p parsed, err error) {
	kind := c.dec.PeekKind()
	if kind != '{' && kind != '[' {
		start, end, err = c.scanner.value()
		return start, end, p, err
	}
	start = int(c.dec.InputOffset())
	start += bytes.IndexByte(c.raw[start:], byte(kind))
	switch {
	case kind == '{' && shape != nil && shape.Fields != nil:
		var o Object
		o, err = c.parseObject(shape, at)
		p.object = &o
	case kind == '[' && shape != nil:
		p.items, err = c.parseArray(shape, at)
	default:
		err = c.value(shape)
	}
	return start, int(c.dec.InputOffset()), p, err
}

func (c *checker) parseArray(shape *Shape, at place) ([]Field, error) {
	items := []Field{}
	if err := c.delim(); err != nil {
		return nil, err
	}
	array := place{path: at.full()}
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		c.path = append(c.path, step{index: i})
		start, end, p, err := c.parseValue(shape.items(), array.item(i))
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		items = append(items, Field{at: array.item(i), raw: c.raw[start:end:end], parsed: p})
	}
	return items, c.delim()
}
