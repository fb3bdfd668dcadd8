package gitignore

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
