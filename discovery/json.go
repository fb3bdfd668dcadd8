package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// maxJSONBrackets is the most arrays and objects in a file with comments. The library needs a
// kilobyte of stack for each level of nesting.
const maxJSONBrackets = 50_000

// standardJSON replaces comments and trailing commas by spaces. Errors quote no values, which can
// be secrets.
func standardJSON(content []byte) ([]byte, error) {
	if json.Valid(content) {
		return content, nil
	}
	if bytes.Count(content, []byte("["))+bytes.Count(content, []byte("{")) > maxJSONBrackets {
		return nil, fmt.Errorf("it has more than %d arrays and objects", maxJSONBrackets)
	}
	// The library needs a line feed after a comment, even at the end of the file.
	plain, err := hujson.Standardize(append(bytes.Clone(content), '\n'))
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), "hujson: ")
		problem, _, _ = strings.Cut(problem, ": invalid literal: ")
		return nil, errors.New("it is not valid JSON: " + problem)
	}
	return plain[:len(content)], nil
}

// parseMembers decodes JSON, which can have comments, into file. The error is mismatch if the JSON
// is valid but has values of the wrong types.
func parseMembers(content []byte, file any, mismatch string) error {
	plain, err := standardJSON(content)
	if err != nil {
		return err
	}
	if json.Unmarshal(plain, file) != nil {
		return errors.New(mismatch)
	}
	return nil
}
