package main

import (
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// streams are the program's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func standardStreams() streams { return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr} }

// interactive reports whether standard input is a terminal.
func (s streams) interactive() bool { return isTerminal(s.in) }

// widthOf returns the number of columns of the terminal that w is, 0 if it is none.
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

// columns returns how many columns of a terminal s takes.
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

// columnsOf returns how many columns r takes: two for the ideographs and syllables of East Asia and
// for emoji, none for marks on another character.
func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1f300 && r < 0x20000, r >= 0xff01 && r <= 0xff60, r >= 0x3000 && r <= 0x303f,
		unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
		return 2
	}
	return 1
}

// cut shortens s to at most width columns, ending in "…".
func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	n := 0
	for i, r := range s {
		if n += columnsOf(r); n > width-1 {
			return s[:i] + "…"
		}
	}
	return s
}
