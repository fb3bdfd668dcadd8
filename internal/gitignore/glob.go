package gitignore

import "strings"

// glob is a sequence of tokens that a text must match from end to end.
type glob []token

// token is one element of a glob.
type token struct {
	op op
	// text is that of opLiteral.
	text string
	// set is that of opSet.
	set *byteSet
}

type op int

const (
	opLiteral op = iota // text
	opOne               // "?": one byte, not a slash
	opSet               // "[…]": one byte of a set, not a slash
	opStar              // "*": any bytes but slashes
	opDeep              // "**" between slashes: any bytes
	opDirs              // "**/": nothing, or any bytes and a slash
)

// compileGlob compiles what begins at the first special character of a pattern, or nothing. ok is
// false if it can match nothing: a quote without a character, a set that is not closed.
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

// stars classifies the asterisks at text[i:]. size is how many bytes they take up, with the slash of "**/".
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
	for _, t := range g {
		if t.op == opDeep || t.op == opDirs || strings.Contains(t.text, "/") {
			return true
		}
	}
	return false
}

// retry is a place to take up again: a token that can match more than it did, and where the
// rest of the text then begins.
type retry struct {
	token int // -1: none
	at    int
}

// match reports whether g matches all of s. It needs no stack. Of the stars only the last
// can be worth a longer match: what an earlier one would gain, the last one has as well, or
// a slash stands between them. The same holds for opDeep and opDirs, which stars never cross.
func (g glob) match(s string) bool {
	star, deep := retry{token: -1}, retry{token: -1}
	t, at := 0, 0
	for {
		size := -1
		if t < len(g) {
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
}

// size is how many bytes a token of fixed size matches at the beginning of s, -1 if it does not match.
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

// lengthen moves at to the next place where the rest after opDeep or opDirs may begin.
func (t token) lengthen(at *int, s string) bool {
	if t.op == opDeep {
		*at++
		return *at <= len(s)
	}
	slash := strings.IndexByte(s[*at:], '/')
	*at += slash + 1
	return slash >= 0
}
