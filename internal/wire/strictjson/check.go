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

// misspelled returns the known name that differs from key only in case, or "" without one or
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
	_, _, _, _ = c.value(shape, place{})
	return c.found
}

// checker reads a whole value and checks the names in it.
type checker struct {
	scanner
	keeps bool   // whether the objects and arrays that the shape describes are kept
	path  []step // to the current value
	found []Violation
}

// step is one element of a path: a name, or an index if name is nil. The path is formatted only for
// a violation.
type step struct {
	name  []byte
	index int
}

// value reads a value and returns its position, and its contents if they are kept.
func (c *checker) value(shape *Shape, at place) (start, end int, p parsed, err error) {
	kind := c.dec.PeekKind()
	if kind != '{' && kind != '[' {
		start, end, err = c.scanner.value()
		return start, end, p, err
	}
	start = int(c.dec.InputOffset())
	start += bytes.IndexByte(c.raw[start:], byte(kind))
	if kind == '{' {
		p.object, err = c.object(shape, at)
	} else {
		p.items, err = c.array(shape, at)
	}
	return start, int(c.dec.InputOffset()), p, err
}

// object reads an object. It returns nil unless the object is kept.
func (c *checker) object(shape *Shape, at place) (o *Object, err error) {
	if c.keeps && shape != nil {
		o = &Object{at: at, raw: c.raw, members: make([]member, 0, 8)}
	}
	if err := c.delim(); err != nil {
		return o, err
	}
	var seen nameSet
	for c.dec.PeekKind() != '}' {
		var m member
		if m.start, m.end, err = c.scanner.value(); err != nil {
			return o, err
		}
		m.name = name(c.raw[m.start:m.end])
		key := m.name.text()
		c.path = append(c.path, step{name: key})
		c.checkName(&seen, key, shape)
		inner := shape.field(key)
		var below place
		if o != nil && inner != nil {
			below = at.member(string(key))
		}
		if m.value, m.end, m.parsed, err = c.value(inner, below); err != nil {
			return o, err
		}
		c.path = c.path[:len(c.path)-1]
		if o == nil {
			continue
		}
		if len(o.members) == MaxItems {
			return o, ErrTooManyMembers
		}
		o.members = append(o.members, m)
	}
	return o, c.delim()
}

// array reads an array. It returns nil unless the array is kept.
func (c *checker) array(shape *Shape, at place) (items []Field, err error) {
	if err := c.delim(); err != nil {
		return nil, err
	}
	keep := c.keeps && shape != nil
	if keep {
		items, at = []Field{}, place{path: at.full()}
	}
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		if keep && i == MaxItems {
			c.report(TooLong, strconv.Itoa(MaxItems)+" entries")
			return nil, errTooManyItems
		}
		c.path = append(c.path, step{index: i})
		var below place
		if keep {
			below = at.item(i)
		}
		start, end, p, err := c.value(shape.items(), below)
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		if keep {
			items = append(items, Field{at: below, raw: c.raw[start:end:end], parsed: p})
		}
	}
	return items, c.delim()
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
	c := checker{scanner: newScanner(raw), keeps: true}
	defer c.release()
	if c.dec.PeekKind() != '{' {
		_, err := ParseObject(raw)
		return Object{}, nil, err
	}
	if shape == nil {
		shape = &Shape{}
	}
	o, err := c.object(shape, place{})
	if err == nil {
		err = c.end()
	}
	if errors.Is(err, errTooManyItems) {
		return Object{}, c.found, nil
	}
	if err != nil {
		return Object{}, nil, err
	}
	return *o, c.found, nil
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
