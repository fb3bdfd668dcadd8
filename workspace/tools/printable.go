package tools

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is a path on one line of text: as it is, or quoted if it holds what would break the line, or show its
// characters in another order than they have.
func Printable(path string) string {
	misleads := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) }
	if utf8.ValidString(path) && strings.IndexFunc(path, misleads) < 0 {
		return path
	}
	return strconv.Quote(path)
}
