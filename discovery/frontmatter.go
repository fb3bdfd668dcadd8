package discovery

import (
	"strconv"
	"strings"
)

// frontmatter is the text between two lines "---" at the beginning of a file.
type frontmatter struct {
	values map[string]value
	body   string
	none   bool   // the file has no frontmatter
	fault  string // why it cannot be read
}

// value is the value of a key: a text, or a list whose items the text separates by commas.
type value struct {
	text string
	list []string
}

// is reports whether the value is word, in any case because YAML has true, True and TRUE.
func (v value) is(word string) bool { return strings.EqualFold(v.text, word) }

// parseFrontmatter splits a file into frontmatter and body, at two lines "---". Frontmatter should be
// YAML, but often is not: it is read as lines of "key: value".
func parseFrontmatter(text string) frontmatter {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) != "---" {
		return frontmatter{body: text, none: true}
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return frontmatter{values: readLines(rest[:at]), body: rest[at+len(line):]}
		}
		at += len(line)
	}
	return frontmatter{fault: "its frontmatter does not end: a line --- is missing"}
}

// readLines reads values: a line "key: value" begins one, and other lines continue it.
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
		return value{text: strings.TrimSpace(strings.Join(rest, " "))}
	}
	var list []string
	for i := range rest {
		rest[i] = uncomment(rest[i])
		if item, ok := strings.CutPrefix(rest[i], "- "); ok {
			list = append(list, unquote(item))
		}
	}
	if first == "" && len(list) > 0 {
		return value{list: list, text: strings.Join(list, ", ")}
	}
	text := strings.TrimSpace(first + " " + strings.Join(rest, " "))
	if text == "~" || strings.EqualFold(text, "null") {
		text = ""
	}
	return value{text: unquote(text)}
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
	n := len(s)
	if n < 2 || s[0] != s[n-1] {
		return s
	}
	if text, err := strconv.Unquote(s); err == nil && s[0] == '"' {
		return text
	}
	inner := s[1 : n-1]
	if s[0] == '\'' {
		inner = strings.ReplaceAll(inner, "''", "\x00")
	}
	if s[0] != '"' && s[0] != '\'' || strings.IndexByte(inner, s[0]) >= 0 { // two quoted values
		return s
	}
	return strings.ReplaceAll(inner, "\x00", "'")
}
