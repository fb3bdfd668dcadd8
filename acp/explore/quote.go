package explore

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote writes a text of a folder or a server as a block, as far as the answer has room. What says whose word it is
// goes before it (A30).
func (t *turn) quote(text string) error {
	text = tame(text)
	if strings.TrimSpace(text) == "" {
		return t.write("It is empty.\n\n")
	}
	whole := len(text)
	if !t.take(whole) {
		text = cutBytes(text, t.room)
		t.room = 0
	}
	if text != "" {
		if err := t.writeFenced(text); err != nil {
			return err
		}
	}
	if len(text) == whole {
		return nil
	}
	return t.write(fmt.Sprintf("Cut: an answer holds %s, and this has %s.\n\n", size(t.bound), size(whole)))
}

// tame takes out of a text what a terminal obeys instead of showing.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case unicode.IsControl(r) && r != '\t' && r != '\n':
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// cutBytes is the beginning of a text, in whole characters.
func cutBytes(text string, size int) string {
	for size > 0 && size < len(text) && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:min(size, len(text))]
}
