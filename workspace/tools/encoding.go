package tools

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/acp-agent/acp-agent/workspace"
)

// encoding is how the text of a file is stored.
type encoding string

// The encodings, whose names are shown. Text is UTF-8 unless it is said.
const (
	utf8Text    encoding = ""
	brokenUTF8  encoding = "UTF-8 with bytes that are not, which are shown as U+EF80 to U+EFFF,"
	windows1252 encoding = "Windows-1252" // and Latin-1, which is a part of it
	utf16LE     encoding = "UTF-16LE"
	utf16BE     encoding = "UTF-16BE"
)

// utf16 has the encodings of files that begin with a byte order mark.
var utf16 = map[encoding]struct {
	unicode.Endianness
	mark string
}{
	utf16LE: {unicode.LittleEndian, "\xff\xfe"},
	utf16BE: {unicode.BigEndian, "\xfe\xff"},
}

// markOf returns the encoding that a byte order mark at the beginning of a file names.
func markOf(content []byte) encoding {
	if bytes.HasPrefix(content, []byte("\xff\xfe\x00\x00")) { // UTF-32, which begins like UTF-16
		return utf8Text
	}
	for e, of := range utf16 {
		if bytes.HasPrefix(content, []byte(of.mark)) {
			return e
		}
	}
	return utf8Text
}

func isText(content []byte) bool { return workspace.CheckText("", content) == nil }

// decode returns the content of a file as UTF-8. ok is false if it is not text. Encoding the text
// gives the content again.
func decode(content []byte) (text []byte, e encoding, ok bool) {
	if isText(content) {
		return content, utf8Text, true
	}
	e = markOf(content)
	switch {
	case e != utf8Text:
		text, _ = unicode.UTF16(utf16[e].Endianness, unicode.ExpectBOM).NewDecoder().Bytes(content)
	case isBrokenUTF8(content):
		e = brokenUTF8
		text = appendBroken(nil, content)
	case isWindows1252(content):
		e = windows1252
		text, _ = charmap.Windows1252.NewDecoder().Bytes(content)
	default:
		return nil, utf8Text, false
	}
	again, err := e.encode(string(text))
	return text, e, err == nil && isText(text) && bytes.Equal(again, content)
}

// encode returns a text as it is stored. The error says which character cannot be.
func (e encoding) encode(text string) ([]byte, error) {
	out := make([]byte, 0, len(text))
	switch e {
	case utf8Text:
		return []byte(text), nil
	case utf16LE, utf16BE:
		return unicode.UTF16(utf16[e].Endianness, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
	case brokenUTF8:
		for _, r := range text {
			if r >= shownByte+0x80 && r <= shownByte+0xff {
				out = append(out, byte(r-shownByte))
			} else {
				out = utf8.AppendRune(out, r)
			}
		}
		return out, nil
	default:
		for _, r := range text {
			c, ok := charmap.Windows1252.EncodeRune(r)
			if !ok {
				return nil, fmt.Errorf("the file is %s text, which cannot have %q", e, r)
			}
			out = append(out, c)
		}
		return out, nil
	}
}

// shownByte is added to a byte that is not UTF-8 to get the character that stands for it, one for
// private use.
const shownByte = 0xef00

// appendBroken appends nearly valid UTF-8 with characters for the bytes that are not.
func appendBroken(text, content []byte) []byte {
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		if r == utf8.RuneError && size == 1 {
			r = shownByte + rune(content[0])
		}
		text = utf8.AppendRune(text, r)
		content = content[size:]
	}
	return text
}

// isBrokenUTF8 reports whether content is probably UTF-8 with a few other bytes: it has more
// characters of several bytes than it has broken places, or is not Windows-1252 either and nearly
// all of ASCII.
func isBrokenUTF8(content []byte) bool {
	whole, broken, inBroken := 0, 0, false
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		isBroken := r == utf8.RuneError && size == 1
		switch {
		case r == 0:
			return false
		case isBroken && !inBroken:
			broken++
		case size > 1:
			whole++
		}
		inBroken, rest = isBroken, rest[size:]
	}
	const rare = 100
	return whole > 0 && whole >= broken ||
		rare*broken <= len(content) && !isWindows1252(content) && !hasControls(content)
}

// hasControls reports whether content has control characters that text does not have.
func hasControls(content []byte) bool {
	for _, c := range content {
		if c < ' ' && bytes.IndexByte([]byte("\t\n\r\f\x1b"), c) < 0 || c == 0x7f {
			return true
		}
	}
	return false
}

// isWindows1252 reports whether content is probably text of Windows-1252: it has no characters that
// text does not have, and few that are not of ASCII.
func isWindows1252(content []byte) bool {
	others := 0
	for _, c := range content {
		switch c {
		case 0x81, 0x8d, 0x8f, 0x90, 0x9d: // which it does not define
			return false
		}
		if c >= 0x80 {
			others++
		}
	}
	return !hasControls(content) && 3*others <= len(content)
}
