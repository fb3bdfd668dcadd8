package strictjson

import (
	"encoding/json"
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
	_ = c.value(shape)
	return c.found
}

// checker reads a whole value and checks the names in it.
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

// value reads a value.
func (c *checker) value(shape *Shape) error {
	switch c.dec.PeekKind() {
	case '{':
		return c.object(shape)
	case '[':
		return c.array(shape)
	default:
		_, _, err := c.scanner.value()
		return err
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
		if !seen.add(key) {
			c.report(DuplicateKey, "")
		}
		if right := shape.misspelled(key); right != "" {
			c.report(WrongCase, right)
		}
		if err := c.value(shape.field(key)); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
	}
	return c.delim()
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
