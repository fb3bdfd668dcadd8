package gitignore

import (
	"bytes"
	"strings"
)

// Rules are the rules of one file, such as a .gitignore. They are immutable and safe for concurrent
// use. A nil *Rules has no rules.
type Rules struct {
	// names holds the rules that are one literal name, by that name.
	names map[string]lastRules
	// endings holds the rules for all names that end alike, such as "*.log", by that ending. It begins
	// with a dot and has no other, so that a name has one at most.
	endings map[string]lastRules
	// rest holds all others, in file order.
	rest []rule
}

// lastRules holds the last of some rules that match the same, and the last that is not for
// directories only. Either may be absent.
type lastRules struct {
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
	switch {
	case one.scope == nameScope && one.form == exact:
		addLast(&r.names, one)
	case one.scope == nameScope && one.form == suffix && strings.LastIndexByte(one.text, '.') == 0:
		addLast(&r.endings, one)
	default:
		r.rest = append(r.rest, one)
	}
}

func addLast(to *map[string]lastRules, one rule) {
	if *to == nil {
		*to = make(map[string]lastRules)
	}
	l := (*to)[one.text]
	if one.kind == Directory {
		l.directory = &one
	} else {
		l.any = &one
	}
	(*to)[one.text] = l
}

func (r *Rules) empty() bool {
	return r == nil || len(r.names) == 0 && len(r.endings) == 0 && len(r.rest) == 0
}

// match finds the verdict of the last rule that matches the entry called name in dir, a path from the
// rules' directory with a slash at its end, "" for that directory itself.
func (r *Rules) match(dir, name string, kind Kind) Verdict {
	var last *rule
	if len(r.names) > 0 {
		last = r.names[name].last(kind)
	}
	if len(r.endings) > 0 {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			last = later(last, r.endings[name[dot:]].last(kind))
		}
	}
	for i := len(r.rest) - 1; i >= 0; i-- {
		one := &r.rest[i]
		if last != nil && one.order < last.order {
			break
		}
		if one.kind == Directory && kind != Directory {
			continue
		}
		if one.matches(dir, name) {
			return one.verdict
		}
	}
	if last == nil {
		return Undecided
	}
	return last.verdict
}

func (l lastRules) last(kind Kind) *rule {
	if kind != Directory {
		return l.any
	}
	return later(l.any, l.directory)
}

// later is the one of two rules, either of which may be absent, that comes later in the file.
func later(a, b *rule) *rule {
	if a == nil || b != nil && b.order > a.order {
		return b
	}
	return a
}
