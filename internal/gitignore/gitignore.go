// Package ignore says what git ignores, by git's own rules.
//
// It reads no files. A caller that walks a tree parses the bytes of each .gitignore
// with [Parse] and keeps one [Matcher] for each directory: [NewMatcher] for the top one,
// [Matcher.Enter] for a directory inside it, which inherits and extends. A Matcher
// judges the entries of its own directory, one name at a time, so that deciding is a few
// comparisons and never a walk back to the top.
//
//	top := ignore.NewMatcher(ignore.Parse(gitignore), ignore.Parse(infoExclude))
//	if top.Match("build", ignore.Directory) == ignore.Ignored {
//		// do not descend
//	}
//	sub := top.Enter("src", ignore.Parse(srcGitignore))
//	sub.Match("main.o", ignore.File)
//
// The rules are those of gitignore(5) as git runs them, the undocumented part included: of
// the rules of one file the last that matches decides; a deeper file goes before a
// shallower one, and every .gitignore before .git/info/exclude; what lies in an ignored
// directory is ignored and cannot be taken back; "**" between slashes crosses directories, and so it
// does behind a literal beginning ("/lib**/x"), although the manual says otherwise.
//
// Three things that git also looks at are left out. The user's global file
// (core.excludesFile) is not read, because it lies outside of what a workspace may read; a
// caller that has its bytes gives them to NewMatcher as the last source. Names are
// compared byte by byte, as with core.ignoreCase off. And a file that is tracked although a
// rule names it is Ignored here, since the index is not looked at.
package gitignore

import (
	"bytes"
	"strings"
)

// Kind is what an entry is.
type Kind int

const (
	// File is everything that is not a directory. To git a symbolic link is one, wherever it points.
	File Kind = iota
	// Directory is a directory.
	Directory
)

// Verdict is what the rules say of an entry.
type Verdict int

const (
	// Undecided: no rule speaks of it. Git does not ignore it.
	Undecided Verdict = iota
	// Ignored: a rule names it or a directory that it is in.
	Ignored
	// Included: the rule that decides is a negated one, which takes it back. Git does
	// not ignore it.
	Included
)

// String is the constant's name in lower case.
func (v Verdict) String() string {
	switch v {
	case Ignored:
		return "ignored"
	case Included:
		return "included"
	default:
		return "undecided"
	}
}

// Matcher judges the entries of one directory. It is immutable and safe for concurrent use. Make
// one with [NewMatcher] or [Matcher.Enter].
type Matcher struct {
	// sources holds those that have rules, the weightiest first.
	sources []source
	// path is the directory's path from the top one with a slash at its end, "" for the top itself.
	path string
	// ignored says that the directory itself is, and with it all that is in it.
	ignored bool
}

// source is a set of rules, and the directory that they speak of.
type source struct {
	rules *Rules
	// base is how much of an entry's path from the top belongs to that directory.
	base int
}

// NewMatcher returns the matcher of a top directory: the top of a repository, or of any
// tree. sources speak of it and all below; each weighs more than those after it. Those
// of a repository are its .gitignore, then its .git/info/exclude. Nil sources are skipped.
func NewMatcher(sources ...*Rules) *Matcher {
	m := &Matcher{}
	for _, rules := range sources {
		if !rules.empty() {
			m.sources = append(m.sources, source{rules: rules})
		}
	}
	return m
}

// Enter returns the matcher of the directory called name in m's directory. rules are those of
// its own .gitignore, nil if it has none. If the directory is ignored, so is everything in it,
// whatever its rules say.
func (m *Matcher) Enter(name string, rules *Rules) *Matcher {
	child := &Matcher{
		sources: m.sources,
		path:    m.path + name + "/",
		ignored: m.Match(name, Directory) == Ignored,
	}
	if !rules.empty() && !child.ignored {
		own := source{rules: rules, base: len(child.path)}
		child.sources = append([]source{own}, m.sources...)
	}
	return child
}

// Match judges the entry called name in m's directory. name is one path component.
func (m *Matcher) Match(name string, kind Kind) Verdict {
	if m.ignored {
		return Ignored
	}
	if len(m.sources) == 0 {
		return Undecided
	}
	for _, s := range m.sources {
		if v := s.rules.match(m.path[s.base:], name, kind); v != Undecided {
			return v
		}
	}
	return Undecided
}

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
