package strict

import (
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/violation"
)

// Shape is the names that are known at one place of a value and below it. A nil Shape
// knows none. Where a value may be one of several kinds, one Shape merges
// them all.
type Shape struct {
	// Fields are the known names of an object and the shapes of their values.
	Fields map[string]*Shape
	// Items is the shape of the entries of an array.
	Items *Shape
}

// misspelled returns the known name that key equals but for case, "" if key is itself
// known or like none.
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

// Check walks raw once and reports, in order, each name that is given twice in one
// object, at any depth ([violation.DuplicateKey]), and each name that equals one that
// shape knows at that place but for case ([violation.WrongCase], with the right
// spelling as Expected). Other unknown names are fine. It reports no values, and
// at most 100 violations. raw is well-formed, or empty; what follows a syntax error is not checked.
func Check(raw json.RawMessage, shape *Shape) []violation.Violation {
	if len(raw) == 0 {
		return nil
	}
	c := checker{scanner: newScanner(raw)}
	_ = c.value(shape, nil)
	return c.found
}

type checker struct {
	scanner
	found []violation.Violation
}

// step is one step on the way to a value: a name, or an index if name is nil. Its
// place is spelled out only for a violation.
type step struct {
	up    *step
	name  []byte
	index int
}

func (s *step) place() place {
	var steps []*step
	for ; s != nil; s = s.up {
		steps = append(steps, s)
	}
	var at place
	for i := len(steps) - 1; i >= 0 && len(at.path) <= maxPath; i-- {
		if name := steps[i].name; name != nil {
			at = at.member(string(name))
		} else {
			at = at.item(steps[i].index)
		}
	}
	return at
}

func (c *checker) value(shape *Shape, at *step) error {
	switch c.dec.PeekKind() {
	case '{':
		return c.object(shape, at)
	case '[':
		return c.array(shape, at)
	default:
		return malformed(c.dec.SkipValue())
	}
}

func (c *checker) object(shape *Shape, at *step) error {
	if err := c.delim(); err != nil {
		return err
	}
	var seen nameSet
	here := step{up: at}
	for c.dec.PeekKind() != '}' {
		start, end, err := c.scanner.value()
		if err != nil {
			return err
		}
		here.name = name(c.raw[start:end]).text()
		if !seen.add(here.name) {
			c.report(&here, violation.DuplicateKey, "")
		}
		if right := shape.misspelled(here.name); right != "" {
			c.report(&here, violation.WrongCase, right)
		}
		if err := c.value(shape.field(here.name), &here); err != nil {
			return err
		}
	}
	return c.delim()
}

func (c *checker) array(shape *Shape, at *step) error {
	if err := c.delim(); err != nil {
		return err
	}
	here := step{up: at}
	for ; c.dec.PeekKind() != ']'; here.index++ {
		if err := c.value(shape.items(), &here); err != nil {
			return err
		}
	}
	return c.delim()
}

func (c *checker) report(at *step, reason violation.Reason, expected string) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, violation.New(at.place().full(), nil, reason).Expecting(expected))
	}
}
