package discovery

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// frontmatter is the text between two lines "---" at the beginning of a file.
type frontmatter struct {
	values map[string]value
	lines  map[string]value // as the lenient reader reads them
	body   string
	none   bool   // the file has no frontmatter
	fault  string // why it cannot be read
	yaml   string // why it is not valid YAML
}

// value is the value of a key.
type value struct {
	text string   // a scalar, or the items of a list separated by commas
	list []string // the items of a list
	kind yaml.Kind
	line string // a list as it is written on one line
}

func (v value) isScalar() bool { return v.kind == yaml.ScalarNode }

// is reports whether the value is word, in any case because YAML has true, True and TRUE.
func (v value) is(word string) bool { return strings.EqualFold(v.text, word) }

// parseFrontmatter splits a file into frontmatter and body. Frontmatter that is not valid YAML is
// read as lines of "key: value". YAML is read as a tree without following aliases, so that the
// memory needed is proportional to its length.
func parseFrontmatter(text string, max int) frontmatter {
	head, body, found, fault := splitFrontmatter(text, max)
	f := frontmatter{body: body, none: !found, fault: fault}
	if !found || fault != "" {
		return f
	}
	if plain, ok := readPlain(head); ok {
		f.values, f.lines = plain, plain
		return f
	}
	f.lines = readLines(head)
	values, err := readYAML(head)
	if err != nil {
		values, f.yaml = f.lines, err.Error()
	}
	f.values = values
	return f
}

// splitFrontmatter finds the two lines. fault says why the second is not found.
func splitFrontmatter(text string, max int) (head, body string, found bool, fault string) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) != "---" {
		return "", text, false, ""
	}
	for at := 0; at < len(rest); {
		end := len(rest)
		if i := strings.IndexByte(rest[at:], '\n'); i >= 0 {
			end = at + i
		}
		if strings.TrimRight(rest[at:end], " \t\r") == "---" {
			return rest[:at], rest[min(end+1, len(rest)):], true, ""
		}
		at = end + 1
		if at > max {
			return "", "", true, fmt.Sprintf("its frontmatter does not end within %d bytes", max)
		}
	}
	return "", "", true, "its frontmatter does not end: a line --- is missing"
}

// readPlain reads head if every line has a key and a text that the YAML reader and the lenient
// reader would read in the same way. Most files are like that, and readPlain takes a tenth of the
// time.
func readPlain(head string) (values map[string]value, ok bool) {
	values = make(map[string]value)
	for line := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		key, text, ok := strings.Cut(line, ": ")
		if _, twice := values[key]; !ok || twice || !isPlainKey(key) || !isPlainText(text) {
			return nil, false
		}
		text = strings.TrimSpace(text)
		values[key] = value{kind: yaml.ScalarNode, text: text, line: text}
	}
	return values, true
}

func isPlainKey(key string) bool {
	for _, r := range key {
		if (r < 'a' || r > 'z') && r != '-' {
			return false
		}
	}
	return key != "" && key[0] != '-'
}

// isPlainText reports whether text begins with a letter and contains no character with a special
// meaning in YAML.
func isPlainText(text string) bool {
	if text == "" || (text[0]|0x20 < 'a' || text[0]|0x20 > 'z') || text[len(text)-1] == ':' {
		return false
	}
	for _, r := range text {
		if r < ' ' || !unicode.IsPrint(r) {
			return false
		}
	}
	return !strings.Contains(text, ": ") && !strings.Contains(text, " #") &&
		!strings.EqualFold(strings.TrimSpace(text), "null")
}

// readYAML reads the values of a YAML mapping.
func readYAML(head string) (values map[string]value, err error) {
	var doc yaml.Node
	// With the additional line, line numbers in errors are those of the file.
	if err := yaml.Unmarshal([]byte("\n"+head), &doc); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	values = make(map[string]value)
	if len(doc.Content) == 0 {
		return values, nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is not a mapping")
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, node := top.Content[i], top.Content[i+1]
		if _, twice := values[key.Value]; twice {
			return nil, fmt.Errorf("line %d: the key %q is given twice", key.Line, key.Value)
		}
		values[key.Value] = valueOf(node)
	}
	return values, nil
}

func valueOf(node *yaml.Node) value {
	v := value{kind: node.Kind}
	switch {
	case node.Kind == yaml.ScalarNode && node.ShortTag() != "!!null":
		v.text = node.Value
	case node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			if item.Kind == yaml.ScalarNode {
				v.list = append(v.list, item.Value)
			}
		}
		v.text = strings.Join(v.list, ", ")
	}
	return v
}

// readLines is the lenient reader: a line "key: value" begins a value, and other lines continue it.
func readLines(head string) map[string]value {
	values := make(map[string]value)
	var key string
	var lines []string
	end := func() {
		if _, twice := values[key]; key != "" && !twice {
			values[key] = lineValue(lines)
		}
	}
	for line := range strings.SplitSeq(head, "\n") {
		name, rest, ok := strings.Cut(line, ":")
		if ok && name != "" && name == strings.TrimSpace(name) &&
			!strings.ContainsAny(name[:1], "-#\"'[{") {
			end()
			key, lines = name, []string{strings.TrimSpace(rest)}
		} else if key != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	end()
	return values
}

// lineValue returns the value of the lines after a key.
func lineValue(lines []string) value {
	first, rest := uncomment(lines[0]), lines[1:]
	if first == ">" || first == ">-" || first == "|" || first == "|-" {
		return value{kind: yaml.ScalarNode, text: strings.TrimSpace(strings.Join(rest, " "))}
	}
	var list []string
	for i := range rest {
		rest[i] = uncomment(rest[i])
		if item, ok := strings.CutPrefix(rest[i], "- "); ok {
			list = append(list, unquote(item))
		}
	}
	if first == "" && len(list) > 0 {
		return value{kind: yaml.SequenceNode, list: list, text: strings.Join(list, ", ")}
	}
	text := strings.TrimSpace(first + " " + strings.Join(rest, " "))
	if text == "~" || strings.EqualFold(text, "null") {
		text = ""
	}
	return value{kind: yaml.ScalarNode, text: unquote(text), line: lines[0]}
}

// uncomment removes a comment from the end of a line: "#" at its beginning or after a space, unless
// a quoted text contains it.
func uncomment(line string) string {
	var quote byte
	for i := range len(line) {
		begins := i == 0 || strings.IndexByte(" \t,[", line[i-1]) >= 0
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && begins && strings.IndexByte(line[i+1:], c) >= 0:
			quote = c
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return strings.TrimSpace(line[:i])
		}
	}
	return line
}

// unquote removes matching quotes around a value.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] &&
		strings.IndexByte(s[1:n-1], s[0]) < 0 { // not two quoted values
		return s[1 : n-1]
	}
	return s
}
