package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"github.com/acp-agent/acp-agent/workspace"
)

// fileText is the content of a file as UTF-8 with line feeds for line ends and no byte order mark.
type fileText struct {
	text        string
	size        int64    // of the file, 0 if it was not read
	diagnostics []string // which rules it breaks
}

// readText reads an open file of at most limit bytes. The error says what is wrong with it.
func readText(f *workspace.File, limit int) (fileText, error) {
	info, err := f.Stat()
	var content []byte
	if err == nil && info.Size() <= int64(limit) {
		content, err = io.ReadAll(io.LimitReader(f, int64(limit)))
	}
	if err != nil {
		return fileText{}, errors.New(reasonOf(err))
	}
	return decode(content, info.Size(), limit)
}

// readPath reads the file at a path, which has at most limit bytes.
func readPath(ws *workspace.Workspace, path string, limit int) (fileText, error) {
	f, err := ws.Open(path)
	if err != nil {
		return fileText{}, err
	}
	defer f.Close()
	file, err := readText(f, limit)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return file, err
}

// decode returns the content of a file of this size, which is at most limit. The error says what is
// wrong with it.
func decode(b []byte, size int64, limit int) (fileText, error) {
	switch {
	case size > int64(limit):
		return fileText{}, fmt.Errorf("it has %d bytes; the limit is %d", size, limit)
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return fileText{size: size}, errors.New("it is UTF-16; save it as UTF-8")
	case bytes.IndexByte(b, 0) >= 0:
		return fileText{size: size}, errors.New("it is not text: it contains NUL bytes")
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(b, '\r') >= 0 {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	if utf8.Valid(b) {
		return fileText{text: string(b), size: size}, nil
	}
	return fileText{string(bytes.ToValidUTF8(b, []byte("\uFFFD"))), size,
		[]string{"the file is not valid UTF-8; invalid bytes are shown as \uFFFD"}}, nil
}

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
