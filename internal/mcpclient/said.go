package mcpclient

import (
	"strings"
	"unicode"
)

// What servers and repositories say, as a person is shown it.

// cut is text of at most n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// oneLine is text on one line, with its characters in the order in which they are. What would break or turn the line, or
// cannot be seen, is a space.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if misleads(r) {
			return ' '
		}
		return r
	}, text)
}

// named is a server's name in a sentence.
func named(server string) string { return cut(oneLine(server), 100) }

// fenced is text as a block of Markdown in which nothing is markup. Its lines stay.
func fenced(text string) string {
	text = strings.Map(func(r rune) rune {
		if misleads(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

func misleads(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
