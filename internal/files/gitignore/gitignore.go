// Package gitignore decides which files git ignores.
//
// It reads no files. A caller that walks a tree parses each .gitignore with [Parse] and keeps a
// [Matcher] for each directory: [NewMatcher] for the top, [Matcher.Enter] for a directory below,
// which inherits and adds rules. A Matcher decides about the entries of its directory, one name at
// a time.
//
//	top := gitignore.NewMatcher(gitignore.Parse(rules), gitignore.Parse(infoExclude))
//	if top.Ignores("build", true) {
//		// do not descend
//	}
//	sub := top.Enter("src", gitignore.Parse(srcRules))
//	sub.Ignores("main.o", false)
//
// The rules are those of gitignore(5) as git implements them: the last matching rule of a file
// decides; a deeper file takes precedence over a shallower one, and every .gitignore over
// .git/info/exclude; everything in an ignored directory is ignored and cannot be included again;
// "**" between slashes crosses directories, and also after a literal beginning ("/lib**/x"),
// although the manual says otherwise.
//
// There are three differences. The user's global file (core.excludesFile) is not read; a caller can
// give its content to NewMatcher as the last source. Names are compared byte by byte, as with
// core.ignoreCase off. A tracked file that matches a rule is ignored, since the index is not read.
//
// Deciding about an entry takes a few milliseconds at most, whatever the rules are. Rules that
// would take longer match nothing.
package gitignore

import (
	"bytes"
	"strings"
)

// Matcher decides about the entries of one directory. It is immutable and safe for concurrent use.
type Matcher struct {
	sources []source // in order of precedence, without empty ones
	path    string   // of the directory from the top, with a slash at its end; "" for the top
	ignored bool     // the directory is ignored, and so is everything in it
}

// source is a set of rules and the directory that they apply to.
type source struct {
	rules *Rules
	base  int // length of that directory's path from the top
}

// NewMatcher returns the matcher of a top directory: that of a repository, or of any tree. sources
// apply to it and everything below, in order of precedence: for a repository its .gitignore, then
// its .git/info/exclude. A source may be nil.
func NewMatcher(sources ...*Rules) *Matcher {
	m := &Matcher{}
	for _, rules := range sources {
		if !rules.empty() {
			m.sources = append(m.sources, source{rules: rules})
		}
	}
	return m
}

// Enter returns the matcher of the directory name in m's directory. rules are the rules of its
// .gitignore, or nil. If the directory is ignored, so is everything in it, whatever its rules say.
func (m *Matcher) Enter(name string, rules *Rules) *Matcher {
	child := &Matcher{
		sources: m.sources,
		path:    m.path + name + "/",
		ignored: m.Ignores(name, true),
	}
	if !rules.empty() && !child.ignored {
		own := source{rules: rules, base: len(child.path)}
		child.sources = append([]source{own}, m.sources...)
	}
	return child
}

// Ignores reports whether git ignores the entry name in m's directory. name is one path component.
// To git a symbolic link is not a directory.
func (m *Matcher) Ignores(name string, isDir bool) bool {
	if m.ignored {
		return true
	}
	left := maxSteps
	path := m.path + name
	for _, s := range m.sources {
		if r := s.rules.match(path[s.base:], name, isDir, &left); r != nil {
			return !r.negated
		}
	}
	return false
}

// Rules are the rules of one file, such as a .gitignore, in its order. They are immutable and safe
// for concurrent use. A nil *Rules is empty.
type Rules struct{ all []rule }

// rule is one line.
type rule struct {
	pattern
	negated bool // the line begins with "!"
	ofDir   bool // the line ends with "/": it matches nothing else
}

// Parse parses a .gitignore. Lines that git does not understand match nothing. It does not keep
// data. Time and memory are linear in its size.
func Parse(data []byte) *Rules {
	rules := &Rules{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range bytes.Lines(data) {
		if r, ok := parseLine(line); ok {
			rules.all = append(rules.all, r)
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
	// To git a line ends with a NUL, like a C string.
	line, _, _ = bytes.Cut(line, []byte{0})
	text := string(trimSpaces(line))

	var r rule
	text, r.negated = strings.CutPrefix(text, "!")
	text, r.ofDir = strings.CutSuffix(text, "/")
	r.pattern = newPattern(text)
	return r, text != ""
}

// trimSpaces removes the spaces at the end of a line, up to one that is quoted with a backslash.
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

func (r *Rules) empty() bool { return r == nil || len(r.all) == 0 }

// match returns the last rule that matches the entry name, which has this path from the rules'
// directory, or nil. It takes no more than about the steps that are left.
func (r *Rules) match(path, name string, isDir bool, left *steps) *rule {
	for i := len(r.all) - 1; i >= 0 && *left > 0; i-- {
		one, text := &r.all[i], name
		if one.ofPath {
			text = path
		}
		if (isDir || !one.ofDir) && one.matches(text, left) {
			return one
		}
	}
	return nil
}
