package gitignore

import "strings"

// scope says what of an entry a pattern is compared with.
type scope int

const (
	// nameScope: its name, at any depth below the rules' directory.
	nameScope scope = iota
	// pathScope: its whole path from the rules' directory.
	pathScope
)

// form says how a pattern is compared. Most patterns in the wild need no glob.
type form int

const (
	globbed form = iota
	exact        // equals text
	prefix       // begins with text
	suffix       // ends with text
)

// pattern is a compiled line.
type pattern struct {
	scope scope
	form  form
	// text is what a form other than globbed compares; for globbed it is the literal beginning,
	// and glob matches what comes after it.
	text string
	glob glob
}

// matches compares the pattern with the entry called name in dir, a path with a slash at its end or "".
// The two are put together only if nothing cheaper tells.
func (p *pattern) matches(dir, name string) bool {
	if p.scope == nameScope || dir == "" {
		return p.matchesText(name)
	}
	switch p.form {
	case exact:
		return len(p.text) == len(dir)+len(name) && p.beginsLike(dir, name)
	case prefix:
		return p.beginsLike(dir, name)
	case suffix:
		if len(p.text) <= len(name) {
			return strings.HasSuffix(name, p.text)
		}
		return strings.HasSuffix(dir+name, p.text)
	default:
		return p.beginsLike(dir, name) && p.matchesText(dir+name)
	}
}

// beginsLike reports whether dir and name, put together, begin with the pattern's text.
func (p *pattern) beginsLike(dir, name string) bool {
	if len(p.text) <= len(dir) {
		return strings.HasPrefix(dir, p.text)
	}
	return strings.HasPrefix(p.text, dir) && strings.HasPrefix(name, p.text[len(dir):])
}

func (p *pattern) matchesText(s string) bool {
	switch p.form {
	case exact:
		return s == p.text
	case prefix:
		return strings.HasPrefix(s, p.text)
	case suffix:
		return strings.HasSuffix(s, p.text)
	default:
		return strings.HasPrefix(s, p.text) && p.glob.match(s[len(p.text):])
	}
}

// compile compiles a line without its "!" and its last "/". ok is false if it can match nothing.
func compile(text string) (p pattern, ok bool) {
	if strings.Contains(text, "/") {
		p.scope = pathScope
		text = strings.TrimPrefix(text, "/")
	}
	special := strings.IndexAny(text, `*?[\`)
	if special < 0 {
		special = len(text)
	}
	// Git takes the literal beginning off before it looks for globs, so that a "**"
	// right behind it counts as one at the beginning. We do the same.
	p.text = text[:special]
	p.glob, ok = compileGlob(text[special:], p.scope)
	if !ok {
		return pattern{}, false
	}
	p.simplify()
	return p, p.form != exact || p.text != ""
}

// simplify finds the cheapest form of a pattern.
func (p *pattern) simplify() {
	if p.text == "" && p.scope == pathScope && len(p.glob) > 1 && p.glob[0].op == opDirs && !p.glob[1:].crossesSlash() {
		p.scope, p.glob = nameScope, p.glob[1:] // "**/x" is "x"
	}
	if len(p.glob) > 0 && p.glob[0].op == opLiteral { // a quoted beginning
		p.text += p.glob[0].text
		p.glob = p.glob[1:]
	}
	anything := opStar
	if p.scope == pathScope {
		anything = opDeep
	}
	switch {
	case len(p.glob) == 0:
		p.form = exact
	case len(p.glob) == 1 && p.glob[0].op == anything:
		p.form = prefix
	case len(p.glob) == 2 && p.text == "" && p.glob[0].op == anything && p.glob[1].op == opLiteral:
		p.form, p.text = suffix, p.glob[1].text
	}
	if p.form != globbed {
		p.glob = nil
	}
}
