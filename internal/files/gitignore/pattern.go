package gitignore

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// scope says what a pattern is compared with.
type scope uint8

const (
	nameScope scope = iota // the entry's name, at any depth below the rules' directory
	pathScope              // the entry's path from the rules' directory
)

// pattern is a compiled line.
type pattern struct {
	scope scope
	// begin and end are the literal beginning and end, and inner is the longest literal. They are
	// compared first.
	begin, end, inner string
	// glob is a regular expression for the whole text, "" if that is begin.
	glob string
}

// steps counts work: about the number of bytes that are compared with an element of a glob.
type steps int

const (
	// maxSteps is the most work for deciding about an entry. All rules of a large repository
	// together take a hundredth of it.
	maxSteps steps = 1 << 18
	// globSteps is the work of using a glob at all.
	globSteps = 128
)

// matches reports whether the pattern matches a name or path. It reports false if no steps are
// left.
func (p *pattern) matches(text string, left *steps) bool {
	*left -= 1 + steps(len(p.begin)+len(p.end)+len(p.inner)+len(text))/16
	switch {
	case p.glob == "":
		return text == p.begin
	case len(text) < len(p.begin)+len(p.end) || !strings.HasPrefix(text, p.begin) ||
		!strings.HasSuffix(text, p.end) || !strings.Contains(text, p.inner):
		return false
	}
	work := globSteps + steps(len(p.glob)*len(text)/4)
	if work > *left {
		*left = 0
		return false
	}
	*left -= work
	return expression(p.glob).MatchString(runes(text))
}

// compile compiles a line without its "!" and its last "/". ok is false if it can match nothing.
func compile(text string) (p pattern, ok bool) {
	if strings.Contains(text, "/") {
		p.scope = pathScope
		text = strings.TrimPrefix(text, "/")
	}
	name, anywhere := strings.CutPrefix(text, "**/")
	if anywhere && name != "" && !strings.Contains(name, "/") {
		p.scope, text = nameScope, name
	}
	// Like git, take off the literal beginning before looking for globs, so that a "**" right after
	// it counts as one at the beginning.
	special := strings.IndexAny(text, `*?[\`)
	if special < 0 {
		p.begin = text
		return p, text != ""
	}
	t := translation{literal: text[:special]}
	if !t.translate(text[special:], p.scope) {
		return pattern{}, false
	}
	if t.glob.Len() == 0 { // only quoted characters
		p.begin = t.literal
		return p, p.begin != ""
	}
	p.begin, p.end = t.begin, t.literal
	t.add("")
	p.glob, p.inner = t.glob.String(), t.longest
	return p, true
}

// translation is a part of a line as a regular expression.
type translation struct {
	glob    strings.Builder
	begin   string // the literal before the first other element
	literal string // after the last one
	longest string // of all literals
}

// add adds an element of a regular expression after the literal before it.
func (t *translation) add(element string) {
	if t.glob.Len() == 0 {
		t.begin = t.literal
		t.glob.WriteString(`(?s)\A`)
	}
	t.glob.WriteString(regexp.QuoteMeta(runes(t.literal)) + element)
	if len(t.literal) > len(t.longest) {
		t.longest = t.literal
	}
	t.literal = ""
}

const anyName = `[^/]*`

// translate translates a pattern from its first special character on. It returns false if the
// pattern can match nothing: a backslash at the end, or a set that is not closed.
func (t *translation) translate(text string, in scope) bool {
	for i := 0; i < len(text); {
		size := 1
		switch text[i] {
		case '\\':
			if i+1 == len(text) {
				return false
			}
			t.literal += text[i+1 : i+2]
			size = 2
		case '?':
			t.add(`[^/]`)
		case '[':
			set, length, ok := parseSet(text[i:])
			if !ok {
				return false
			}
			t.add(set)
			size = length
		case '*':
			element, length := stars(text, i, in)
			t.add(element)
			size = length
		default:
			t.literal += text[i : i+1]
		}
		i += size
	}
	return true
}

// stars translates the asterisks at text[i:]. size is their length, including the slash of "**/".
func stars(text string, i int, in scope) (element string, size int) {
	rest := strings.TrimLeft(text[i:], "*")
	size = len(text) - i - len(rest)
	switch {
	case size == 1 || in == nameScope || i > 0 && text[i-1] != '/':
		return anyName, size
	case strings.HasPrefix(rest, "/"):
		return `(?:.*/)?`, size + 1
	case rest == "", strings.HasPrefix(rest, `\/`):
		return `.*`, size
	default:
		return anyName, size
	}
}

// parseSet translates the set at the beginning of text, which is a "[". size is its length in
// bytes. ok is false if it is not closed or names an unknown class.
func parseSet(text string) (set string, size int, ok bool) {
	i, begin := 1, "["
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i, begin = i+1, "[^/"
	}
	var members strings.Builder
	// A "]" right at the beginning is a member. low is the previous member, from which a "-" makes
	// a range, or -1.
	for first, low := i, -1; ; {
		if i >= len(text) {
			return "", 0, false
		}
		if text[i] == ']' && i > first {
			break
		}
		if text[i] == '-' && low >= 0 && i+1 < len(text) && text[i+1] != ']' {
			high, size, ok := member(text[i+1:])
			if !ok {
				return "", 0, false
			}
			addRange(&members, low, int(high))
			i, low = i+1+size, -1
			continue
		}
		if name, size, isClass := classAt(text[i:]); isClass {
			ranges, known := classes[name]
			if !known {
				return "", 0, false
			}
			for ; ranges != ""; ranges = ranges[2:] {
				addRange(&members, int(ranges[0]), int(ranges[1]))
			}
			i, low = i+size, -1
			continue
		}
		c, size, ok := member(text[i:])
		if !ok {
			return "", 0, false
		}
		addRange(&members, int(c), int(c))
		i, low = i+size, int(c)
	}
	if members.Len() == 0 && begin == "[" {
		return `[^\x00-\x{10ffff}]`, i + 1, true
	}
	return begin + members.String() + "]", i + 1, true
}

// addRange adds the bytes of a range to a set, but for a slash, which no set matches.
func addRange(to *strings.Builder, low, high int) {
	switch {
	case low > high:
	case low <= '/' && '/' <= high:
		addRange(to, low, '/'-1)
		addRange(to, '/'+1, high)
	default:
		fmt.Fprintf(to, `\x{%x}-\x{%x}`, low, high)
	}
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

// classes are the POSIX classes, in ASCII: the first and the last byte of each range.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~",
	"space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// runes returns a text with one character for each byte, as git compares bytes.
func runes(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}

// expressions are the compiled globs. They are shared, as each walk parses the same files, and few,
// because one takes a thousand times the memory of its text.
var expressions = struct {
	sync.Mutex
	known map[string]*regexp.Regexp
}{known: make(map[string]*regexp.Regexp)}

const maxExpressions = 1000

func expression(glob string) *regexp.Regexp {
	expressions.Lock()
	defer expressions.Unlock()
	e := expressions.known[glob]
	if e == nil {
		if len(expressions.known) >= maxExpressions {
			clear(expressions.known)
		}
		e = regexp.MustCompile(glob + `\z`)
		expressions.known[glob] = e
	}
	return e
}
