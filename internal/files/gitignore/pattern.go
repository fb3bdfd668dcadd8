package gitignore

import (
	"slices"
	"strings"
)

// scope says what a pattern is compared with.
type scope uint8

const (
	nameScope scope = iota // the entry's name, at any depth below the rules' directory
	pathScope              // the entry's path from the rules' directory
)

// form says how a pattern is compared. Most real patterns need no glob.
type form uint8

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
	// text is the text to compare with; for globbed it is the literal beginning, and glob matches
	// the rest.
	text string
	glob glob
}

// steps counts work. Trying a token is one step, and so is comparing stepBytes bytes.
type steps int

const (
	// maxSteps is the most work for deciding about an entry. All rules of a large repository
	// together take a hundredth of it.
	maxSteps steps = 1 << 18
	// stepBytes is the number of bytes that are compared or copied in a step.
	stepBytes = 16
)

// take counts the comparison of n bytes.
func (s *steps) take(n int) { *s -= 1 + steps(n/stepBytes) }

// matches compares the pattern with the entry name in dir, a path with a slash at its end or "". It
// avoids joining the two.
func (p *pattern) matches(dir, name string, left *steps) bool {
	left.take(len(p.text))
	if p.scope == nameScope || dir == "" {
		return p.matchesText(name, left)
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
		above, ok := strings.CutSuffix(p.text, name)
		return ok && strings.HasSuffix(dir, above)
	default:
		if !p.beginsLike(dir, name) {
			return false
		}
		left.take(len(dir) + len(name))
		return p.matchesText(dir+name, left)
	}
}

// beginsLike reports whether dir+name begins with the pattern's text.
func (p *pattern) beginsLike(dir, name string) bool {
	if len(p.text) <= len(dir) {
		return strings.HasPrefix(dir, p.text)
	}
	return strings.HasPrefix(p.text, dir) && strings.HasPrefix(name, p.text[len(dir):])
}

func (p *pattern) matchesText(s string, left *steps) bool {
	switch p.form {
	case exact:
		return s == p.text
	case prefix:
		return strings.HasPrefix(s, p.text)
	case suffix:
		return strings.HasSuffix(s, p.text)
	default:
		return strings.HasPrefix(s, p.text) && p.glob.match(s[len(p.text):], left)
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
	// Like git, take off the literal beginning before looking for globs, so that a "**" right after
	// it counts as one at the beginning.
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
	if p.text == "" && p.scope == pathScope && len(p.glob) > 1 && p.glob[0].op == opDirs &&
		!p.glob[1:].crossesSlash() {
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

// glob is a sequence of tokens that a text must match from end to end.
type glob []token

// token is one element of a glob.
type token struct {
	op   op
	text string   // of opLiteral
	set  *byteSet // of opSet
}

type op uint8

const (
	opLiteral op = iota // text
	opOne               // "?": one byte, not a slash
	opSet               // "[…]": one byte of a set, not a slash
	opStar              // "*": any bytes but slashes
	opDeep              // "**" between slashes: any bytes
	opDirs              // "**/": nothing, or any bytes and a slash
)

// compileGlob compiles a pattern from its first special character on. ok is false if it can match
// nothing: a backslash at the end, or a set that is not closed.
func compileGlob(text string, in scope) (g glob, ok bool) {
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			g = append(g, token{op: opLiteral, text: string(literal)})
			literal = nil
		}
	}
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '\\':
			if i+1 == len(text) {
				return nil, false
			}
			literal = append(literal, text[i+1])
			i += 2
		case '?':
			flush()
			g = append(g, token{op: opOne})
			i++
		case '[':
			set, size, ok := parseSet(text[i:])
			if !ok {
				return nil, false
			}
			flush()
			g = append(g, token{op: opSet, set: set})
			i += size
		case '*':
			flush()
			op, size := stars(text, i, in)
			g = append(g, token{op: op})
			i += size
		default:
			literal = append(literal, c)
			i++
		}
	}
	flush()
	return g, true
}

// stars classifies the asterisks at text[i:]. size is their length, including the slash of "**/".
func stars(text string, i int, in scope) (op op, size int) {
	end := i
	for end < len(text) && text[end] == '*' {
		end++
	}
	size = end - i
	if size == 1 || in == nameScope || i > 0 && text[i-1] != '/' {
		return opStar, size
	}
	switch rest := text[end:]; {
	case strings.HasPrefix(rest, "/"):
		return opDirs, size + 1
	case rest == "", strings.HasPrefix(rest, `\/`):
		return opDeep, size
	default:
		return opStar, size
	}
}

// crossesSlash reports whether g can match a text with a slash.
func (g glob) crossesSlash() bool {
	return slices.ContainsFunc(g, func(t token) bool {
		return t.op == opDeep || t.op == opDirs || strings.Contains(t.text, "/")
	})
}

// retry is a token that can match more than it did, and where the rest of the text begins then.
type retry struct {
	token int // -1 for none
	at    int
}

// match reports whether g matches all of s. It needs no stack: only the last star needs to be tried
// with a longer match, because it can match whatever an earlier star could, unless a slash is in
// between. The same holds for opDeep and opDirs, which stars never cross. It reports false if no
// steps are left.
func (g glob) match(s string, left *steps) bool {
	star, deep := retry{token: -1}, retry{token: -1}
	t, at := 0, 0
	for *left > 0 {
		size := -1
		*left--
		if t < len(g) {
			*left -= steps(len(g[t].text) / stepBytes)
			switch g[t].op {
			case opStar:
				star, size = retry{t, at}, 0
			case opDeep, opDirs:
				star, deep, size = retry{token: -1}, retry{t, at}, 0
			default:
				size = g[t].size(s[at:])
			}
		} else if at == len(s) {
			return true
		}
		if size >= 0 {
			t, at = t+1, at+size
			continue
		}
		if star.token >= 0 && star.at < len(s) && s[star.at] != '/' {
			star.at++
			t, at = star.token+1, star.at
			continue
		}
		if deep.token < 0 || !g[deep.token].lengthen(&deep.at, s) {
			return false
		}
		star.token = -1
		t, at = deep.token+1, deep.at
	}
	return false
}

// size returns how many bytes a token of fixed size matches at the beginning of s, -1 if it does
// not match.
func (t token) size(s string) int {
	switch {
	case t.op == opLiteral:
		if strings.HasPrefix(s, t.text) {
			return len(t.text)
		}
	case s == "" || s[0] == '/':
	case t.op == opOne || t.set.has(s[0]):
		return 1
	}
	return -1
}

// lengthen moves at to the next position at which the rest after opDeep or opDirs may begin.
func (t token) lengthen(at *int, s string) bool {
	if t.op == opDeep {
		*at++
		return *at <= len(s)
	}
	slash := strings.IndexByte(s[*at:], '/')
	*at += slash + 1
	return slash >= 0
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *byteSet) add(first, last byte) {
	for c := int(first); c <= int(last); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// parseSet parses the set at the beginning of text, which is a "[". size is its length in bytes. ok
// is false if it is not closed or names an unknown class.
func parseSet(text string) (set *byteSet, size int, ok bool) {
	set = &byteSet{}
	i := 1
	negated := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negated {
		i++
	}
	// A "]" right at the beginning is a member. low is the previous member, from which a "-" makes
	// a range, or -1.
	for first, low := i, -1; ; {
		if i >= len(text) {
			return nil, 0, false
		}
		if text[i] == ']' && i > first {
			break
		}
		if text[i] == '-' && low >= 0 && i+1 < len(text) && text[i+1] != ']' {
			high, size, ok := member(text[i+1:])
			if !ok {
				return nil, 0, false
			}
			set.add(byte(low), high)
			i, low = i+1+size, -1
			continue
		}
		name, size, isClass := classAt(text[i:])
		if isClass {
			if !set.addClass(name) {
				return nil, 0, false
			}
			i, low = i+size, -1
			continue
		}
		c, size, ok := member(text[i:])
		if !ok {
			return nil, 0, false
		}
		set.add(c, c)
		i, low = i+size, int(c)
	}
	if negated {
		set.invert()
	}
	return set, i + 1, true
}

// member parses one byte, which may be quoted.
func member(text string) (c byte, size int, ok bool) {
	if text[0] != '\\' {
		return text[0], 1, true
	}
	if len(text) == 1 {
		return 0, 0, false
	}
	return text[1], 2, true
}

// classAt parses a "[:name:]" at the beginning of text.
func classAt(text string) (name string, size int, ok bool) {
	rest, ok := strings.CutPrefix(text, "[:")
	if !ok {
		return "", 0, false
	}
	end := strings.IndexByte(rest, ']')
	if end < 1 || rest[end-1] != ':' {
		return "", 0, false
	}
	return rest[:end-1], len("[:") + end + 1, true
}

// addClass adds a POSIX class, in ASCII. It reports whether the name is known.
func (s *byteSet) addClass(name string) bool {
	ranges, known := map[string]string{ // the first and the last byte of each range
		"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f",
		"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~",
		"space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
	}[name]
	for i := 0; i < len(ranges); i += 2 {
		s.add(ranges[i], ranges[i+1])
	}
	return known
}
