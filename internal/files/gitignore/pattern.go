package gitignore

import "strings"

// pattern is a line without its "!" and its last "/".
type pattern struct {
	// ofPath means that it is compared with the entry's path from the rules' directory, in place of
	// its name.
	ofPath bool

	begin string // the literal beginning
	glob  string // the rest: it is empty, or begins with a special character
	end   string // the end of glob that is certainly literal, which is compared first
}

// special are the characters that stand for others, or quote one.
const special = `*?[\`

// newPattern returns the pattern of a line that is not empty.
func newPattern(line string) (p pattern) {
	if strings.Contains(line, "/") {
		p.ofPath = true
		line = strings.TrimPrefix(line, "/")
	}
	name, anywhere := strings.CutPrefix(line, "**/")
	if anywhere && name != "" && !strings.Contains(name, "/") {
		p.ofPath, line = false, name
	}
	// Like git, take off the literal beginning before looking for globs, so that a "**" right after
	// it counts as one at the beginning.
	p.begin = line
	if at := strings.IndexAny(line, special); at >= 0 {
		p.begin, p.glob = line[:at], line[at:]
		end := line[strings.LastIndexAny(line, special+"]")+1:]
		p.end = strings.TrimPrefix(end, "/") // which "**/" need not match
	}
	return p
}

// steps counts work: about the number of bytes that are compared.
type steps int

// maxSteps is the most work for deciding about an entry. All rules of a large repository together
// take a hundredth of it.
const maxSteps steps = 1 << 18

// matches reports whether the pattern matches a name or path. It reports false if no steps are
// left.
func (p *pattern) matches(text string, left *steps) bool {
	*left -= 1 + steps(len(p.begin)+len(p.end))/16
	text, begins := strings.CutPrefix(text, p.begin)
	if !begins || !strings.HasSuffix(text, p.end) {
		return false
	}
	glob := p.glob
	// The last asterisks that match within a name, and the last that match across directories. If
	// what follows them does not match, they match more. None before them need be tried again.
	var star, deep asterisks
	for glob != "" || text != "" {
		if strings.HasPrefix(glob, "*") {
			found := p.asterisksAt(len(p.glob)-len(glob), text)
			glob = found.glob
			if found.kind == withinName {
				star = found
			} else {
				star, deep = asterisks{}, found
			}
			continue
		}
		matched, size := matchOne(glob, text)
		if *left -= steps(1 + size); *left <= 0 {
			return false
		}
		switch {
		case matched:
			glob, text = glob[size:], text[1:]
		case star.extend():
			glob, text = star.glob, star.text
		case deep.extend():
			star, glob, text = asterisks{}, deep.glob, deep.text
		default:
			return false
		}
	}
	return true
}

// asterisks are one or more that follow each other.
type asterisks struct {
	kind asterisksKind
	glob string // what follows them
	text string // what follows the part of the text that they match
}

// asterisksKind says what asterisks match.
type asterisksKind uint8

const (
	noAsterisks asterisksKind = iota
	withinName
	directories // each with its slash
	anything
)

// asterisksAt returns the asterisks at an index of the glob, which match nothing of text yet. Those
// of "**/" include the slash.
func (p *pattern) asterisksAt(i int, text string) asterisks {
	rest := strings.TrimLeft(p.glob[i:], "*")
	one := len(p.glob)-len(rest) == i+1
	inside := i > 0 && p.glob[i-1] != '/' // a name, so that they cannot stand for directories
	switch {
	case one || inside || !p.ofPath:
	case strings.HasPrefix(rest, "/"):
		return asterisks{directories, rest[1:], text}
	case rest == "", strings.HasPrefix(rest, `\/`):
		return asterisks{anything, rest, text}
	}
	return asterisks{withinName, rest, text}
}

// extend makes them match a character or a directory more. It returns false if they cannot.
func (a *asterisks) extend() bool {
	size := min(len(a.text), 1)
	switch {
	case a.kind == noAsterisks, a.kind == withinName && strings.HasPrefix(a.text, "/"):
		return false
	case a.kind == directories:
		size = strings.IndexByte(a.text, '/') + 1
	}
	a.text = a.text[size:]
	return size > 0
}

// matchOne reports whether the first element of a glob, which is not an asterisk, matches the first
// byte of a text, and how long the element is.
func matchOne(glob, text string) (matched bool, size int) {
	switch {
	case glob == "" || text == "":
		return false, 0
	case glob[0] == '?':
		return text[0] != '/', 1
	case glob[0] == '[':
		return matchSet(glob, text[0])
	}
	c, size := member(glob)
	return c == text[0], size
}

// matchSet reports whether the set at the beginning of a glob has a byte, and how long the set is.
// A set that is not closed, or names an unknown class, has none. No set has a slash.
func matchSet(glob string, c byte) (has bool, size int) {
	i := 1
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i++
	}
	negated := i > 1
	// A "]" right at the beginning is a member. low is the previous member, from which a "-" makes
	// a range, or -1.
	for first, low := i, -1; i < len(glob); {
		rest := glob[i:]
		name, length, isClass := classAt(rest)
		switch {
		case rest[0] == ']' && i > first:
			return has != negated && c != '/', i + 1
		case low >= 0 && rest[0] == '-' && len(rest) > 1 && rest[1] != ']':
			high, size := member(rest[1:])
			has = has || low <= int(c) && c <= high
			i, low = i+1+size, -1
		case isClass:
			ranges, known := classes[name]
			if !known {
				return false, len(glob)
			}
			for ; ranges != ""; ranges = ranges[2:] {
				has = has || ranges[0] <= c && c <= ranges[1]
			}
			i, low = i+length, -1
		default:
			one, size := member(rest)
			has = has || c == one
			i, low = i+size, int(one)
		}
	}
	return false, len(glob)
}

// member returns the byte at the beginning of a glob, which may be quoted, and its length. For a
// backslash at the end it returns NUL, which no name has.
func member(glob string) (c byte, size int) {
	switch {
	case glob[0] != '\\':
		return glob[0], 1
	case len(glob) == 1:
		return 0, 1
	default:
		return glob[1], 2
	}
}

// classAt returns the name in a "[:name:]" at the beginning of text, and the length of that.
func classAt(text string) (name string, size int, ok bool) {
	rest, ok := strings.CutPrefix(text, "[:")
	end := strings.IndexByte(rest, ']')
	if !ok || end < 1 || rest[end-1] != ':' {
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
