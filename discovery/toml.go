package discovery

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxTOMLDepth is how deep arrays and tables can be nested, and how many names a key can have.
const maxTOMLDepth = 8

// readTOML reads a TOML document. Errors quote no values, which can be secrets.
func readTOML(text string) (map[string]any, error) {
	// The library needs memory in proportion to the square of the depth.
	if isDeepTOML(text) {
		return nil, errors.New("it is not valid TOML: it is nested too deep")
	}
	values := make(map[string]any)
	_, err := toml.Decode(text, &values)
	if wrong, ok := errors.AsType[toml.ParseError](err); ok {
		return nil, fmt.Errorf("it is not valid TOML: line %d has an error", wrong.Position.Line)
	}
	return values, err
}

// isDeepTOML reports whether a document exceeds maxTOMLDepth.
func isDeepTOML(text string) bool {
	nested, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i += tomlStringSize(text[i:]) - 1
		case '#':
			i += lineSize(text[i:]) - 1
		case '.':
			dots++
		case ',', '=', '\n':
			dots = 0
		case '[', '{':
			nested++
		case ']', '}':
			nested--
		}
		if nested > maxTOMLDepth || dots >= maxTOMLDepth {
			return true
		}
	}
	return false
}

// lineSize returns the size of the first line of text, without its end.
func lineSize(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// tomlStringSize returns the size of the string at the beginning of text, quotation marks included.
// One that is not closed ends with its line, or with the text if it can have several lines.
func tomlStringSize(text string) int {
	quote, size := text[:1], lineSize(text)
	if long := strings.Repeat(quote, 3); strings.HasPrefix(text, long) {
		quote, size = long, len(text)
	}
	for i := len(quote); i < size; i++ {
		switch {
		case text[i] == '\\' && quote[0] == '"':
			i++
		case strings.HasPrefix(text[i:], quote):
			i += len(quote)
			for end := i + 2; len(quote) == 3 && i < min(end, size) && text[i] == quote[0]; {
				i++ // the string can end with two quotation marks
			}
			return i
		}
	}
	return size
}
