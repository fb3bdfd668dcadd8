package text

import (
	"iter"
	"strings"
	"unicode"
)

// FirstHidden returns the first character of s that a reader cannot see, and whether there is one:
// a control character other than a tab or a line ending, one that reorders text, or one that is
// invisible. A joiner counts as hidden except after an emoji or a letter of a script that needs it,
// and a variation selector except after a symbol. A text with hidden characters can say more than a
// reader sees.
func FirstHidden(s string) (rune, bool) {
	for _, r := range hidden(s) {
		return r, true
	}
	return 0, false
}

// Unhide returns s with U+FFFD in place of each hidden character: see [FirstHidden].
func Unhide(s string) string {
	var b strings.Builder
	end := 0
	for at, r := range hidden(s) {
		b.WriteString(s[end:at])
		b.WriteRune(unicode.ReplacementChar)
		end = at + len(string(r))
	}
	if end == 0 {
		return s
	}
	return b.String() + s[end:]
}

// hidden yields each hidden character of s, which is UTF-8, with its position.
func hidden(s string) iter.Seq2[int, rune] {
	return func(yield func(int, rune) bool) {
		before := rune(0)
		for i, r := range s {
			if hides(before, r, s[i+len(string(r)):]) && !yield(i, r) {
				return
			}
			before = r
		}
	}
}

// hides reports whether r is hidden between before and after.
func hides(before, r rune, after string) bool {
	const textStyle, emojiStyle, keycap = '\ufe0e', '\ufe0f', "\u20e3"
	switch {
	case r == '\t', r == '\n':
		return false
	case r == '\r':
		return !strings.HasPrefix(after, "\n")
	case joins(r):
		return !isSymbol(before) && before != emojiStyle && !unicode.In(before, joiningScripts...)
	case r == textStyle, r == emojiStyle:
		return !isSymbol(before) && !strings.HasPrefix(after, keycap)
	default:
		return misleads(r)
	}
}

// isSymbol reports whether r is a symbol or punctuation mark that may be an emoji.
func isSymbol(r rune) bool {
	return r > unicode.MaxASCII && unicode.In(r, unicode.S, unicode.P)
}

// joiningScripts are the scripts whose letters change their form with joiners.
var joiningScripts = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari,
	unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Myanmar,
	unicode.Khmer, unicode.Tibetan,
}
