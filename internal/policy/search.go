package policy

import (
	"path"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/commandline"
)

// isIn reports whether the words of a run rule are in a command line, in this order, wherever they
// stand in one of its commands: after assignments, in quotes, behind another program. The first may
// have a directory before it.
func (r Rule) isIn(line string) bool {
	if line == "" {
		return false
	}
	for _, command := range commandsIn(line) {
		var parts []string
		for _, word := range command {
			parts = append(parts, fields(word)...) // such as the text of sh -c
		}
		if r.follows(command) || r.follows(parts) {
			return true
		}
	}
	return false
}

// follows reports whether words contain those of the rule in their order.
func (r Rule) follows(words []string) bool {
	found := 0
	for _, word := range words {
		if found < len(r.words) && isWord(r.words[found], word, found == 0) {
			found++
		}
	}
	return found == len(r.words)
}

// isWord reports whether a word of a command is the one of a rule.
func isWord(wanted, word string, isProgram bool) bool {
	if strings.EqualFold(wanted, word) {
		return true
	}
	if !isProgram {
		return false
	}
	base := path.Base(strings.ReplaceAll(word, `\`, "/"))
	return strings.EqualFold(wanted, base) ||
		strings.EqualFold(wanted, strings.TrimSuffix(strings.ToLower(base), ".exe"))
}

// commandsIn returns the words of the commands in a line, without quotes.
func commandsIn(line string) [][]string {
	tokens, _ := commandline.Split(strings.ReplaceAll(line, "\r", "\n"))
	commands := [][]string{nil}
	for _, t := range tokens {
		last := len(commands) - 1
		switch {
		case t.Kind != commandline.Operator:
			commands[last] = append(commands[last], t.Text)
		case t.Text != "<" && t.Text != ">": // which stand within a command
			commands = append(commands, nil)
		}
	}
	return commands
}

// fields returns what could be words of a command in a text.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("'\"`\\$&|;<>(){},=", r)
	})
}

// sameName reports whether two names are the same but for the characters and the case that some
// agents change.
func sameName(a, b string) bool { return plainName(a) == plainName(b) }

func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(unicode.ToUpper(r))
		}
		return -1
	}, name)
}

// namesHost reports whether a text contains the name of a host, or of one below it if it begins
// with "*.".
func namesHost(s, host string) bool {
	s = strings.ToLower(s)
	host, isAbove := strings.CutPrefix(host, "*.")
	for at := 0; ; {
		i := strings.Index(s[at:], host)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(host)
		at = begin + 1
		after := strings.TrimPrefix(s[end:], ".")
		if after != "" && isInHost(after[0]) || begin > 0 && isInHost(s[begin-1]) {
			continue
		}
		if begin > 0 && s[begin-1] == '.' && !isAbove || isAbove && (begin == 0 || s[begin-1] != '.') {
			continue
		}
		return true
	}
}

// isInHost reports whether a character continues a label of a host's name.
func isInHost(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c >= 0x80
}
