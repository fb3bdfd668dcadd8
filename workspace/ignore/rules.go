package ignore

import (
	"bytes"
	"strings"
)

// Rules are the rules of one file, such as a .gitignore. They are immutable and safe for concurrent
// use. A nil *Rules has no rules.
type Rules struct {
	// names holds the rules that are one literal name, by that name.
	names map[string]named
	// rest holds all others, in file order.
	rest []rule
}

// named holds the last rule for a literal name, and the last that is not for
// directories only. Either may be absent.
type named struct {
	any, directory *rule
}

// rule is one line: a pattern, and what it means when it matches.
type rule struct {
	pattern
	// order is its place among the file's rules: of those that match, the last decides.
	order int
	// verdict is Ignored, or Included for a line that begins with "!".
	verdict Verdict
	// kind is Directory for a line that ends with "/", which matches nothing else.
	kind Kind
}

// Parse reads the content of a .gitignore. It cannot fail: lines that git makes no sense of
// match nothing. data is not kept. Time and memory are linear in its size, which the
// caller bounds.
func Parse(data []byte) *Rules {
	rules := &Rules{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	order := 0
	for line := range bytes.Lines(data) {
		if r, ok := parseLine(line); ok {
			r.order = order
			order++
			rules.add(r)
		}
	}
	return rules
}

func parseLine(line []byte) (rule, bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) == 0 || line[0] == '#' {
		return rule{}, false
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	// To git a line is a C string.
	line, _, _ = bytes.Cut(line, []byte{0})
	text := string(trimSpaces(line))

	r := rule{verdict: Ignored}
	if rest, negated := strings.CutPrefix(text, "!"); negated {
		r.verdict, text = Included, rest
	}
	if rest, slash := strings.CutSuffix(text, "/"); slash {
		r.kind, text = Directory, rest
	}
	p, ok := compile(text)
	r.pattern = p
	return r, ok
}

// trimSpaces cuts the spaces at the end of a line, except one that a backslash quotes
// and those before it.
func trimSpaces(line []byte) []byte {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

func (r *Rules) add(one rule) {
	if one.scope != nameScope || one.form != exact {
		r.rest = append(r.rest, one)
		return
	}
	if r.names == nil {
		r.names = make(map[string]named)
	}
	n := r.names[one.text]
	if one.kind == Directory {
		n.directory = &one
	} else {
		n.any = &one
	}
	r.names[one.text] = n
}

func (r *Rules) empty() bool { return r == nil || len(r.names) == 0 && len(r.rest) == 0 }

// match finds the verdict of the last rule that matches the entry at path, a path from the
// rules' directory, whose last component is name.
func (r *Rules) match(path, name string, kind Kind) Verdict {
	verdict, after := Undecided, -1
	if last := r.names[name].last(kind); last != nil {
		verdict, after = last.verdict, last.order
	}
	for i := len(r.rest) - 1; i >= 0; i-- {
		one := &r.rest[i]
		if one.order < after {
			break
		}
		if one.kind == Directory && kind != Directory {
			continue
		}
		if one.matches(path, name) {
			return one.verdict
		}
	}
	return verdict
}

func (n named) last(kind Kind) *rule {
	if kind != Directory || n.directory == nil {
		return n.any
	}
	if n.any == nil || n.any.order < n.directory.order {
		return n.directory
	}
	return n.any
}
