package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/text/width"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Width returns the number of columns of w if it is a terminal, otherwise 0.
func Width(w io.Writer) int {
	if !Is(w) {
		return 0
	}
	if width := terminalWidth(fileOf(w)); width > 0 {
		return width
	}
	return 80
}

// fileOf returns the file that a stream reads or writes, or nil.
func fileOf(stream any) *os.File {
	if beside, ok := stream.(aside); ok {
		stream = beside.to
	}
	file, _ := stream.(*os.File)
	return file
}

// Is reports whether an [io.Reader] or [io.Writer] is a terminal.
func Is(stream any) bool {
	file := fileOf(stream)
	return file != nil && (isatty.IsTerminal(file.Fd()) || isatty.IsCygwinTerminal(file.Fd()))
}

// Columns returns how many columns s takes on a terminal.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// prefixColumns returns the length in bytes of the longest prefix of s that takes at most n
// columns.
func prefixColumns(s string, n int) int {
	for i, r := range s {
		if n -= columnsOf(r); n < 0 {
			return i
		}
	}
	return len(s)
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

// Cut shortens s to at most max columns, ending in "…".
func Cut(s string, max int) string {
	if Columns(s) <= max {
		return s
	}
	return s[:prefixColumns(s, max-1)] + "…"
}

// OneLine returns a part of a line as it can be shown.
func OneLine(s string) string {
	return strings.NewReplacer("\t", " ", "\n", " ").Replace(text.Plain(s))
}

// wrapped returns a line as lines of at most width columns, so that a command can be copied. They
// have room for a wide character.
func wrapped(line string, width int) (lines []string) {
	const widest = 2
	for width = max(width, widest); Columns(line) > width; {
		n := prefixColumns(line, width)
		if end := strings.LastIndexByte(line[:n], ' '); end > 0 {
			n = end + 1
		} else if end := strings.LastIndexAny(line[:n], "/:,"); end > 0 {
			n = end + 1
		}
		lines, line = append(lines, line[:n]), line[n:]
	}
	return append(lines, line)
}

// Say prints paragraphs. On a terminal they are wrapped between words, each behind its indent.
func Say(w io.Writer, format string, args ...any) error {
	return Item(w, "", fmt.Sprintf(format, args...))
}

// Item prints paragraphs like [Say], the first behind a mark and all others behind its width.
func Item(w io.Writer, mark, s string) error {
	width, hang := Width(w), strings.Repeat(" ", Columns(mark))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = wrap(mark+line, hang+indentOf(line), width)
		mark = hang
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// indentOf returns the spaces at the beginning of a line.
func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

// wrap breaks a line, which may have styles, between words so that each part has fewer than width
// columns if its words are short enough. hang begins each further line.
func wrap(line, hang string, width int) string {
	if width == 0 || Columns(withoutStyles(line)) < width {
		return line
	}
	var b strings.Builder
	column, words, space := 0, 0, ""
	for word := range strings.SplitAfterSeq(line, " ") {
		bare := strings.TrimSuffix(word, " ")
		n := Columns(withoutStyles(bare))
		if words > 0 && column+n >= width {
			b.WriteString("\n" + hang)
			column, words, space = Columns(withoutStyles(hang)), 0, ""
		}
		b.WriteString(space + bare)
		space = word[len(bare):]
		column += Columns(withoutStyles(word))
		if n > 0 {
			words++
		}
	}
	return b.String() + space
}

// Flow returns a text that was wrapped for more columns than width, wrapped again: its paragraphs,
// and the items of lists, such as "  NAME   what it is". Other indented lines, such as examples,
// are kept.
func Flow(s string, width int) string {
	var b strings.Builder
	flowing, hang, fits := "", "", true
	end := func() {
		if flowing != "" {
			b.WriteString(wrap(flowing, hang, width) + "\n")
		}
		flowing, hang = "", ""
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		fits = fits && Columns(line) <= width
		indent, item := indentOf(line), strings.LastIndex(line, "  ")
		switch {
		case flowing != "" && line != "" && indent == hang:
			flowing += " " + line[len(indent):]
			continue
		case line != "" && indent == "":
			end()
			flowing = line
		case item > len(indent):
			end()
			flowing, hang = line, strings.Repeat(" ", item+2)
		default:
			end()
			b.WriteString(line + "\n")
		}
	}
	if end(); fits {
		return s
	}
	return b.String()
}

// withoutStyles returns a text without the escape sequences of [Style].
func withoutStyles(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// Since describes a time in the past, relative to now if that is less than a month ago.
func Since(t, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	case d < 30*day:
		return text.Count(int(d/day), "day", "days") + " ago"
	}
	return t.Local().Format(time.DateOnly)
}
