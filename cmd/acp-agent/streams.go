package main

import (
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/text/width"
)

// streams are the program's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func standardStreams() streams { return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr} }

// interactive reports whether standard input is a terminal.
func (s streams) interactive() bool { return isTerminal(s.in) }

// widthOf returns the number of columns of w if it is a terminal, otherwise 0.
func widthOf(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	if width := terminalWidth(w.(*os.File)); width > 0 {
		return width
	}
	return 80
}

// isTerminal reports whether an [io.Reader] or [io.Writer] is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(file.Fd()) || isatty.IsCygwinTerminal(file.Fd()))
}

// columns returns how many columns s takes on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// prefixColumns returns the length in bytes of the longest prefix of s that takes at most n
// columns, and at least one character.
func prefixColumns(s string, n int) int {
	end := 0
	for i, r := range s {
		if n -= columnsOf(r); n < 0 && i > 0 {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return end
}

// columnsOf returns how many columns r takes: two for the characters of East Asia and for emoji,
// none for marks on another character. Where terminals differ it returns the larger number: a line
// that is wrapped elsewhere than expected could look like another one.
func columnsOf(r rune) int {
	const emojiStyle = '\ufe0f' // makes a symbol as wide as an emoji
	switch kind := width.LookupRune(r).Kind(); {
	case r < utf8.RuneSelf || r == emojiStyle:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1f300 && r < 0x20000, kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens s to at most max columns, ending in "…".
func cut(s string, max int) string {
	if columns(s) <= max {
		return s
	}
	n := 0
	for i, r := range s {
		if n += columnsOf(r); n > max-1 {
			return s[:i] + "…"
		}
	}
	return s
}
