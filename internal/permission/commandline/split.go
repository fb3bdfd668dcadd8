package commandline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind says what the shell does with a [token].
type tokenKind int

const (
	// literal is a word that the shell passes on as it is.
	literal tokenKind = iota
	// expanded is a word that the shell may change, such as a pattern, a variable or a word with a
	// backslash.
	expanded
	// substituted is a word whose quotes contain a command that the shell runs.
	substituted
	// operator stands between words, such as "&&", a redirection, "$(" or the end of a line.
	operator
)

// token is a word without its quotes, or an operator.
type token struct {
	kind tokenKind
	text string
}

// operators are those of more than one character that [split] keeps together.
var operators = []string{"&&", "||", "$("}

// unquoted are the characters besides letters and digits that no shell treats specially in the
// middle of a word.
const unquoted = "_./:,@+=-"

// MaxLine is the length of the longest line that is read, in bytes.
const MaxLine = 64 << 10

// split returns the words and operators of a command line of a POSIX shell. complete is false if a
// quotation does not end, and for a line that is longer than [MaxLine], of which nothing is read.
func split(line string) (tokens []token, complete bool) {
	if len(line) > MaxLine {
		return nil, false
	}
	s := splitter{rest: line}
	for s.rest != "" {
		s.step()
	}
	s.endWord()
	return s.tokens, s.quote == 0
}

type splitter struct {
	rest   string
	tokens []token
	quote  rune // 0 outside of quotes
	begun  bool // a word
	word   strings.Builder
	kind   tokenKind // of the word
}

// step reads the next character or operator.
func (s *splitter) step() {
	r, size := utf8.DecodeRuneInString(s.rest)
	invalid := r == utf8.RuneError && size == 1
	text := s.rest[:size]
	s.rest = s.rest[size:]
	switch {
	case s.quote == '\'' && r != '\'':
		s.add(text, !invalid && unicode.IsPrint(r))
	case r == '\\':
		s.escape()
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote == '"':
		if r == '`' || r == '$' && strings.HasPrefix(s.rest, "(") {
			s.kind = substituted
		}
		s.add(text, r != '$' && r != '`' && !invalid && unicode.IsPrint(r))
	case r == '"' || r == '\'':
		s.quote, s.begun = r, true
	case r == ' ' || r == '\t':
		s.endWord()
	case r == '#' && !s.begun:
		s.comment()
	case strings.ContainsRune("\n;|&()<>`", r) || r == '$' && strings.HasPrefix(s.rest, "("):
		s.operator(text)
	default:
		s.add(text, s.isPlain(r))
	}
}

// escape adds the character after a backslash. A line break there is removed. Within quotes the
// backslash is a character too if the next one is of a regular expression and of no shell.
func (s *splitter) escape() {
	_, size := utf8.DecodeRuneInString(s.rest)
	next := s.rest[:size]
	s.rest = s.rest[size:]
	if s.quote == '"' && next != "" && strings.Contains("().[]{}+*?|^", next) {
		s.add(`\`+next, true)
		return
	}
	if next == "\n" {
		next = ""
		s.kind = max(s.kind, expanded)
		return
	}
	s.add(next, false)
}

// comment adds a comment as it is written, because not all shells skip it.
func (s *splitter) comment() {
	text, _, _ := strings.Cut(s.rest, "\n")
	s.rest = s.rest[len(text):]
	s.tokens = append(s.tokens, token{expanded, "#"}, token{expanded, text})
}

// isPlain reports whether an unquoted character stands for itself.
func (s *splitter) isPlain(r rune) bool {
	before := s.word.String()
	switch r {
	case '%': // of a format, such as --format=%h
		return before != ""
	case '~': // the end of a revision, such as HEAD~1
		return before != "" && !strings.HasSuffix(before, "=") && !strings.HasSuffix(before, ":")
	}
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) ||
		strings.ContainsRune(unquoted, r)
}

func (s *splitter) add(text string, literal bool) {
	s.begun = true
	s.word.WriteString(text)
	if !literal {
		s.kind = max(s.kind, expanded)
	}
}

func (s *splitter) endWord() {
	if s.begun {
		s.tokens = append(s.tokens, token{s.kind, s.word.String()})
	}
	s.word.Reset()
	s.begun, s.kind = false, literal
}

// operator adds the operator that begins with text. The number of a redirected file belongs to it.
func (s *splitter) operator(text string) {
	if before := s.word.String(); (text == "<" || text == ">") && before != "" &&
		strings.Trim(before, "0123456789") == "" {
		s.begun = false
	}
	s.endWord()
	for _, long := range operators {
		if strings.HasPrefix(long, text) && strings.HasPrefix(s.rest, long[1:]) {
			text, s.rest = long, s.rest[1:]
		}
	}
	s.tokens = append(s.tokens, token{operator, text})
}
