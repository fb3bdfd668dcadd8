package explore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// part is what was read of a file.
type part struct {
	text []byte
	// first and last are the lines that text holds; both are 0 if it holds none.
	first, last int
	// total is how many lines the file has, 0 if its end was not reached.
	total int
	// cut says that there was no room for all that was asked for, and next is the line to go on with.
	cut  bool
	next int
	// whole is how much of text is whole lines.
	whole int
}

// readLines reads the lines that are asked for, up to room bytes of text. The error is errBinary,
// the context's, or that of reading. Lines before the first are read past, whatever their size.
func readLines(ctx context.Context, file io.Reader, want lines, room int) (part, error) {
	in := bufio.NewReaderSize(file, step)
	start, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return part{}, err
	}
	if hasNUL(start) {
		return part{}, errBinary
	}
	var p part
	begun := false // something of the current line was read
	for number := 1; want.last == 0 || number <= want.last; {
		if ctx.Err() != nil {
			return part{}, context.Cause(ctx)
		}
		piece, err := in.ReadSlice('\n') // a line, or as much of one as the buffer holds
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return part{}, err
		}
		if number >= want.first && len(piece) > 0 && !p.take(piece, number, room) {
			break
		}
		begun = begun || len(piece) > 0
		switch {
		case err == nil:
			p.whole = len(p.text)
			number++
			begun = false
		case err == io.EOF && begun:
			p.total = number
			return p.checked()
		case err == io.EOF:
			p.total = number - 1
			return p.checked()
		}
	}
	return p.checked()
}

// take adds a line or a piece of one. It reports false if there is no room for it.
func (p *part) take(piece []byte, number, room int) bool {
	if len(p.text)+len(piece) <= room {
		if p.first == 0 {
			p.first = number
		}
		p.last = number
		p.text = append(p.text, piece...)
		return true
	}
	p.cut, p.next = true, number
	if p.whole > 0 {
		p.text, p.last = p.text[:p.whole], number-1
		return false
	}
	// The first line alone is too long: show its beginning.
	p.text = wholeRunes(append(p.text, piece...), room)
	if len(p.text) > 0 {
		p.first, p.last, p.next = number, number, number+1
	}
	return false
}

func (p part) checked() (part, error) {
	if !utf8.Valid(p.text) {
		return part{}, errBinary
	}
	return p, nil
}

// wholeRunes is text, longer than size, cut to at most size bytes between characters.
func wholeRunes(text []byte, size int) []byte {
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// summary says what was read of the file called name.
func (p part) summary(name string) string {
	switch {
	case p.first == 0 && p.cut:
		return fmt.Sprintf("Nothing of %s.", code(name))
	case p.first == 0 && p.total == 0:
		return fmt.Sprintf("%s is empty.", code(name))
	case p.first == 0:
		return fmt.Sprintf("%s has only %s.", code(name), count(p.total, "line", "lines"))
	case p.first == 1 && p.last == p.total:
		return fmt.Sprintf("%s, %s.", code(name), count(p.total, "line", "lines"))
	}
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	if p.first == p.last {
		return fmt.Sprintf("%s, line %d%s.", code(name), p.first, of)
	}
	return fmt.Sprintf("%s, lines %d to %d%s.", code(name), p.first, p.last, of)
}
