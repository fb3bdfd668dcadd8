package discovery

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// Limits of a TOML document. The library needs memory in proportion to the square of the number of
// tables in each other and of names in a key.
const (
	maxTOML       = 64 << 10 // bytes
	maxTOMLTables = 500      // braces, also in texts
	maxTOMLDots   = 300      // in a line
)

// readTOML reads a TOML document. Errors quote no values, which can be secrets.
func readTOML(text string) (map[string]any, error) {
	complex := len(text) > maxTOML || strings.Count(text, "{") > maxTOMLTables
	for line := range strings.Lines(text) {
		complex = complex || strings.Count(line, ".") > maxTOMLDots
	}
	if complex {
		return nil, errors.New("it is too long, or has too many braces, or dots in a line")
	}
	values := make(map[string]any)
	_, err := toml.Decode(text, &values)
	if wrong, ok := errors.AsType[toml.ParseError](err); ok {
		return nil, fmt.Errorf("it is not valid TOML: line %d has an error", wrong.Position.Line)
	}
	return values, err
}
