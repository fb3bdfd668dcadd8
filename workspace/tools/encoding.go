package tools

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how the text of a file is stored.
type encoding string

// The encodings, whose names are shown. Text is UTF-8 unless it is said.
const (
	utf8Text    encoding = ""
	windows1252 encoding = "Windows-1252" // and Latin-1, which is a part of it
	utf16LE     encoding = "UTF-16LE"
	utf16BE     encoding = "UTF-16BE"
)

// The byte order marks with which files in UTF-16 begin.
const (
	markLE = "\xff\xfe"
	markBE = "\xfe\xff"
)

// byteOrder reads and writes UTF-16.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// order returns the byte order of UTF-16.
func (e encoding) order() byteOrder {
	if e == utf16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// markOf returns the encoding that a byte order mark at the beginning of a file names.
func markOf(content []byte) encoding {
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe\x00\x00")): // UTF-32, which begins like UTF-16
		return utf8Text
	case bytes.HasPrefix(content, []byte(markLE)):
		return utf16LE
	case bytes.HasPrefix(content, []byte(markBE)):
		return utf16BE
	default:
		return utf8Text
	}
}

// decode returns the content of a file as UTF-8. ok is false if it is not text. Encoding the text
// gives the content again.
func decode(content []byte) (text []byte, e encoding, ok bool) {
	if isText(content) {
		return content, utf8Text, true
	}
	if e = markOf(content); e == utf8Text {
		if !isWindows1252(content) {
			return nil, utf8Text, false
		}
		for _, c := range content {
			text = utf8.AppendRune(text, runeOf(c))
		}
		return text, windows1252, true
	}
	units := make([]uint16, (len(content)-2)/2)
	for i := range units {
		units[i] = e.order().Uint16(content[2+2*i:])
	}
	text = []byte(string(utf16.Decode(units)))
	again, err := e.encode(string(text))
	return text, e, err == nil && isText(text) && bytes.Equal(again, content)
}

// encode returns a text as it is stored. The error says which character cannot be.
func (e encoding) encode(text string) ([]byte, error) {
	switch e {
	case utf8Text:
		return []byte(text), nil
	case windows1252:
		out := make([]byte, 0, len(text))
		for _, r := range text {
			c, ok := byteOf(r)
			if !ok {
				return nil, fmt.Errorf("the file is %s text, which cannot have %q", e, r)
			}
			out = append(out, c)
		}
		return out, nil
	default:
		out := []byte(markLE)
		if e == utf16BE {
			out = []byte(markBE)
		}
		for _, unit := range utf16.Encode([]rune(text)) {
			out = e.order().AppendUint16(out, unit)
		}
		return out, nil
	}
}

// high has the characters of Windows-1252 from 0x80 to 0x9f, 0 where it has none.
var high = [32]rune{'€', 0, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0, 'Ž', 0,
	0, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0, 'ž', 'Ÿ'}

func runeOf(c byte) rune {
	if c >= 0x80 && c < 0xa0 {
		return high[c-0x80]
	}
	return rune(c)
}

func byteOf(r rune) (c byte, ok bool) {
	if r < 0x80 || r >= 0xa0 && r <= 0xff {
		return byte(r), true
	}
	for i, other := range high {
		if other == r && r != 0 {
			return byte(0x80 + i), true
		}
	}
	return 0, false
}

// isWindows1252 reports whether content is probably text of Windows-1252: it has no characters that
// text does not have, and few that are not of ASCII.
func isWindows1252(content []byte) bool {
	others := 0
	for _, c := range content {
		switch {
		case c < ' ' && bytes.IndexByte([]byte("\t\n\r\f\x1b"), c) < 0, c == 0x7f, runeOf(c) == 0:
			return false
		case c >= 0x80:
			others++
		}
	}
	return 3*others <= len(content)
}
