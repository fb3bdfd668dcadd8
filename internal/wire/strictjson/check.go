package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shape describes the known names in a value and below it. A nil Shape knows none. Where a value
// may be one of several variants, one Shape merges them all.
type Shape struct {
	// Fields are the known names of an object and the shapes of their values.
	Fields map[string]*Shape
	// Items is the shape of the entries of an array.
	Items *Shape
}

// misspelled returns the known name that differs from key only in case, or "" if there is none or
// key is known.
func (s *Shape) misspelled(key []byte) string {
	if s == nil {
		return ""
	}
	if _, known := s.Fields[string(key)]; known {
		return ""
	}
	for field := range s.Fields {
		if strings.EqualFold(field, string(key)) {
			return field
		}
	}
	return ""
}

func (s *Shape) field(key []byte) *Shape {
	if s == nil {
		return nil
	}
	return s.Fields[string(key)]
}

func (s *Shape) items() *Shape {
	if s == nil {
		return nil
	}
	return s.Items
}

// Check walks raw once and reports, in order, each duplicate name in an object at any depth
// ([DuplicateKey]), and each name that differs from a name known to shape only in case
// ([WrongCase], with the right spelling as Expected). Other unknown names are allowed. The
// violations contain no values, and there are at most [MaxViolations]. Nothing after a syntax error
// is checked.
func Check(raw json.RawMessage, shape *Shape) []Violation {
	if len(raw) == 0 {
		return nil
	}
	c := checker{scanner: newScanner(raw)}
	defer c.release()
	_ = c.value(shape)
	return c.found
}

type checker struct {
	scanner
	path  []step // to the current value
	found []Violation
}

// step is one element of a path: a name, or an index if name is nil. The path is formatted only for
// a violation.
type step struct {
	name  []byte
	index int
}

func (c *checker) value(shape *Shape) error {
	switch c.dec.PeekKind() {
	case '{':
		return c.object(shape)
	case '[':
		return c.array(shape)
	default:
		return malformed(c.dec.SkipValue())
	}
}

func (c *checker) object(shape *Shape) error {
	if err := c.delim(); err != nil {
		return err
	}
	var seen nameSet
	for c.dec.PeekKind() != '}' {
		start, end, err := c.scanner.value()
		if err != nil {
			return err
		}
		key := name(c.raw[start:end]).text()
		c.path = append(c.path, step{name: key})
		c.checkName(&seen, key, shape)
		if err := c.value(shape.field(key)); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
	}
	return c.delim()
}

// checkName reports a key that was seen before or is misspelled according to shape.
func (c *checker) checkName(seen *nameSet, key []byte, shape *Shape) {
	if !seen.add(key) {
		c.report(DuplicateKey, "")
	}
	if right := shape.misspelled(key); right != "" {
		c.report(WrongCase, right)
	}
}

func (c *checker) array(shape *Shape) error {
	if err := c.delim(); err != nil {
		return err
	}
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		c.path = append(c.path, step{index: i})
		if err := c.value(shape.items()); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
	}
	return c.delim()
}

// report adds a violation of the name that was read last.
func (c *checker) report(reason Reason, expected string) {
	if len(c.found) >= MaxViolations {
		return
	}
	var at place
	for _, s := range c.path {
		if s.name != nil {
			at = at.member(string(s.name))
		} else {
			at = at.item(s.index)
		}
		if len(at.path) > maxPath {
			break
		}
	}
	c.found = append(c.found, NewViolation(at.full(), nil, reason).Expecting(expected))
}

// Parse combines [ParseObject] and [Check] in one pass. Objects and arrays that shape describes are
// parsed along the way, so that reading them does not scan them again. Nothing is read after an
// array with more than [MaxItems] entries.
func Parse(raw json.RawMessage, shape *Shape) (Object, []Violation, error) {
	if isAbsent(raw) {
		return Object{}, nil, nil
	}
	c := checker{scanner: newScanner(raw)}
	defer c.release()
	if c.dec.PeekKind() != '{' {
		_, err := ParseObject(raw)
		return Object{}, nil, err
	}
	o, err := c.parseObject(shape, place{})
	if err == nil {
		err = c.end()
	}
	if errors.Is(err, errTooManyItems) {
		return Object{}, c.found, nil
	}
	if err != nil {
		return Object{}, nil, err
	}
	return o, c.found, nil
}

// MaxItems is the most entries of an array, and the most members of an object. Longer ones are
// refused, because an entry takes a hundred times more memory than the two bytes that it needs in a
// request.
const MaxItems = 10_000

var (
	// errTooManyItems ends Parse at an array that is too long, after that was reported.
	errTooManyItems = errors.New("too many entries")
	// ErrTooManyMembers is returned for an object with more than [MaxItems] members.
	ErrTooManyMembers = fmt.Errorf("an object has more than %d members", MaxItems)
)

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
		if len(o.members) == MaxItems {
			return o, ErrTooManyMembers
		}
		o.members = append(o.members, m)
	}
	return o, c.delim()
}

// parseValue reads a value and returns its position. It also parses the parts that shape describes.
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
		if i == MaxItems {
			c.report(TooLong, strconv.Itoa(MaxItems)+" entries")
			return nil, errTooManyItems
		}
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
