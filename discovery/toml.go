package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readTOML reads a TOML document. Numbers are a json.Number, dates and times are strings as they
// are written. The libraries for TOML are many times larger than what the few files that we read
// need.
func readTOML(text string) (map[string]any, error) {
	r := &tomlReader{text: text}
	top := make(map[string]any)
	table := top
	for {
		r.skip(" \t\r\n")
		if r.at == len(r.text) {
			return top, nil
		}
		var err error
		if r.accept("[") {
			table, err = r.header(top)
		} else {
			err = r.assignment(table, 0)
		}
		if err == nil {
			err = r.endLine()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", 1+strings.Count(r.text[:r.at], "\n"), err)
		}
	}
}

// tomlReader reads text from at on.
type tomlReader struct {
	text string
	at   int
}

// maxTOMLDepth is how deep arrays and inline tables can be nested.
const maxTOMLDepth = 32

// skip skips characters and, if these include line feeds, comments.
func (r *tomlReader) skip(characters string) {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case strings.IndexByte(characters, c) >= 0:
			r.at++
		case c == '#' && strings.Contains(characters, "\n"):
			r.skipComment()
		default:
			return
		}
	}
}

func (r *tomlReader) skipComment() {
	if n := strings.IndexByte(r.text[r.at:], '\n'); n >= 0 {
		r.at += n
	} else {
		r.at = len(r.text)
	}
}

// accept skips a prefix if it comes next.
func (r *tomlReader) accept(prefix string) bool {
	ok := strings.HasPrefix(r.text[r.at:], prefix)
	if ok {
		r.at += len(prefix)
	}
	return ok
}

// endLine skips the rest of a line, which must be empty.
func (r *tomlReader) endLine() error {
	r.skip(" \t\r")
	if r.at < len(r.text) && r.text[r.at] == '#' {
		r.skipComment()
	}
	if r.at < len(r.text) && !r.accept("\n") {
		return errors.New("there is something after the value")
	}
	return nil
}

// header reads the rest of [table] or [[list.of.tables]] and returns the table.
func (r *tomlReader) header(top map[string]any) (map[string]any, error) {
	list := r.accept("[")
	path, err := r.key()
	if err != nil {
		return nil, err
	}
	if !r.accept("]") || list && !r.accept("]") {
		return nil, errors.New("a bracket is missing")
	}
	last := path[len(path)-1]
	if !list {
		return inner(top, path)
	}
	parent, err := inner(top, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	tables, ok := parent[last].([]any)
	if !ok && parent[last] != nil {
		return nil, fmt.Errorf("%s is not a list of tables", last)
	}
	table := make(map[string]any)
	parent[last] = append(tables, table)
	return table, nil
}

// inner returns the table at a path, which it makes if there is none. Of a list of tables it is the
// last one.
func inner(table map[string]any, path []string) (map[string]any, error) {
	for _, name := range path {
		next := table[name]
		if list, ok := next.([]any); ok && len(list) > 0 {
			next = list[len(list)-1]
		}
		if next == nil {
			next = make(map[string]any)
			table[name] = next
		}
		sub, ok := next.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not a table", name)
		}
		table = sub
	}
	return table, nil
}

// assignment reads key = value into table.
func (r *tomlReader) assignment(table map[string]any, depth int) error {
	path, err := r.key()
	if err != nil {
		return err
	}
	if !r.accept("=") {
		return errors.New("an equals sign is missing")
	}
	if table, err = inner(table, path[:len(path)-1]); err != nil {
		return err
	}
	last := path[len(path)-1]
	if _, twice := table[last]; twice {
		return fmt.Errorf("%s is given twice", last)
	}
	table[last], err = r.value(depth)
	return err
}

// key reads a key with dots, and the blanks around it.
func (r *tomlReader) key() ([]string, error) {
	var path []string
	for {
		r.skip(" \t")
		var name string
		if r.at < len(r.text) && (r.text[r.at] == '"' || r.text[r.at] == '\'') {
			var err error
			if name, err = r.quoted(r.text[r.at : r.at+1]); err != nil {
				return nil, err
			}
		} else if name = r.word("_-"); name == "" {
			return nil, errors.New("a key is missing")
		}
		path = append(path, name)
		r.skip(" \t")
		if !r.accept(".") {
			return path, nil
		}
	}
}

// word reads letters, digits and the other characters.
func (r *tomlReader) word(others string) string {
	from := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			break
		}
		r.at++
	}
	return r.text[from:r.at]
}

func (r *tomlReader) value(depth int) (any, error) {
	r.skip(" \t")
	if depth > maxTOMLDepth {
		return nil, errors.New("the value is nested too deep")
	}
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if strings.HasPrefix(r.text[r.at:], quote) {
			return r.quoted(quote)
		}
	}
	if r.accept("[") {
		list := []any{}
		err := r.items("]", func() error {
			item, err := r.value(depth + 1)
			list = append(list, item)
			return err
		})
		return list, err
	}
	if r.accept("{") {
		table := make(map[string]any)
		return table, r.items("}", func() error { return r.assignment(table, depth+1) })
	}
	switch word := r.word("+-._:"); {
	case word == "":
		return nil, errors.New("a value is missing")
	case word == "true" || word == "false":
		return word == "true", nil
	default:
		if n := strings.ReplaceAll(word, "_", ""); json.Valid([]byte(n)) {
			return json.Number(n), nil
		}
		return word, nil
	}
}

// items reads items separated by commas up to the closing bracket.
func (r *tomlReader) items(closing string, item func() error) error {
	for {
		r.skip(" \t\r\n")
		if r.accept(closing) {
			return nil
		}
		if err := item(); err != nil {
			return err
		}
		r.skip(" \t\r\n")
		if !r.accept(",") && !strings.HasPrefix(r.text[r.at:], closing) {
			return errors.New("a comma or a closing bracket is missing")
		}
	}
}

// quoted reads a string in quotation marks. Those with single ones have no escapes.
func (r *tomlReader) quoted(quote string) (string, error) {
	r.at += len(quote)
	if len(quote) == 3 && !r.accept("\r\n") {
		r.accept("\n")
	}
	var b strings.Builder
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case strings.HasPrefix(r.text[r.at:], quote):
			for len(quote) == 3 && strings.HasPrefix(r.text[r.at+1:], quote) { // quotation marks at the end of the text
				b.WriteByte(c)
				r.at++
			}
			r.at += len(quote)
			return b.String(), nil
		case c == '\n' && len(quote) == 1:
			return "", errors.New("a quotation mark is missing")
		case c == '\\' && quote[0] == '"':
			r.at++
			if err := r.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			r.at++
		}
	}
	return "", errors.New("a quotation mark is missing")
}

// escape reads what follows a backslash.
func (r *tomlReader) escape(b *strings.Builder) error {
	if r.at == len(r.text) {
		return errors.New("a quotation mark is missing")
	}
	c := r.text[r.at]
	r.at++
	if i := strings.IndexByte(`btnfre"\`, c); i >= 0 {
		b.WriteByte("\b\t\n\f\r\x1b\"\\"[i])
		return nil
	}
	digits := 0
	switch c {
	case ' ', '\t', '\r', '\n': // the end of a line and the blanks of the next are left out
		r.skipBlanks()
		return nil
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits > 0 && r.at+digits <= len(r.text) {
		if n, err := strconv.ParseUint(r.text[r.at:r.at+digits], 16, 32); err == nil && utf8.ValidRune(rune(n)) {
			b.WriteRune(rune(n))
			r.at += digits
			return nil
		}
	}
	return fmt.Errorf("the escape \\%c is not valid", c)
}

// skipBlanks skips white space, in which # has no meaning.
func (r *tomlReader) skipBlanks() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}
