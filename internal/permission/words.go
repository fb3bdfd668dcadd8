package permission

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
)

// maxNested is how deep the text of a command is looked for in words of others, such as that of
// sh -c.
const maxNested = 3

// commandsIn returns the words of the commands that a line may run, without quotes: those that
// stand in it, and those that are the text of a word. Nothing is expanded: the line is also read as
// if what a shell expands were empty. Of a line that is too long it reads the beginning.
func commandsIn(line string) (all [][]string) {
	line = line[:min(len(line), commandline.MaxLine)]
	decoded := escape().ReplaceAllStringFunc(line, func(code string) string {
		base, digits := 8, code[1:]
		if strings.ContainsAny(digits[:1], "xuU") {
			base, digits = 16, digits[1:]
		}
		n, _ := strconv.ParseUint(digits, base, 32)
		return string(rune(n))
	})
	for _, read := range slices.Compact([]string{line, decoded, expansion().ReplaceAllString(decoded, "")}) {
		all, _ = appendCommands(all, read, maxNested)
	}
	return all
}

// Words returns the words of the commands that a line may run, each once: all files that it names
// are among them.
func Words(line string) (words []string) {
	seen := make(map[string]bool)
	for _, word := range slices.Concat(commandsIn(line)...) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

var (
	escape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3})`)
	})
	expansion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("\\$\\(\\s*\\)|``|\\$\\{[^{}]*\\}|\\$[A-Za-z_][A-Za-z0-9_]*|\\$[-@*#?!$0-9]")
	})
)

// appendCommands appends the words of the commands in a line, and those into which a shell writes
// as the words of a command ">". Each command is also read as the parts of its words, and with the
// words of the commands in its texts, which may use later words: in sh -c 'touch $0' x the file is
// x. It returns all words as they are read last.
func appendCommands(all [][]string, line string, depth int) (_ [][]string, words []string) {
	commands, written := splitCommands(line)
	for _, command := range commands {
		var parts, joined []string
		for _, word := range command {
			inner := fields(word)
			parts = append(parts, inner...)
			if len(word) > 2 && word[0] == '-' && word[1] != '-' {
				parts = append(parts, word[2:]) // the value of an option, such as -g.env
			}
			if depth > 0 && word != line && (len(inner) > 1 || strings.Contains(word, ">")) {
				var nested []string
				all, nested = appendCommands(all, word, depth-1)
				joined = append(joined, nested...)
			} else {
				joined = append(joined, word)
			}
		}
		all = append(all, command, parts, joined)
		words = append(words, joined...)
	}
	if len(written) > 0 {
		all = append(all, append([]string{">"}, written...))
	}
	return all, words
}

// splitCommands returns the words of the commands that stand in a line, without quotes, and those
// into which a shell writes.
func splitCommands(line string) (commands [][]string, written []string) {
	tokens, _ := commandline.Split(strings.ReplaceAll(line, "\r", "\n"))
	commands = [][]string{nil}
	writes := false // into the next word
	for _, t := range tokens {
		last := len(commands) - 1
		if t.Kind != commandline.Operator {
			commands[last] = append(commands[last], t.Text)
			if writes {
				written = append(written, t.Text)
			}
			writes = false
			continue
		}
		writes = t.Text == ">" || writes && (t.Text == "|" || t.Text == "&")
		isWithin := t.Text == "<" || t.Text == ">" // a command
		if !isWithin && len(commands[last]) > 0 {
			commands = append(commands, nil)
		}
	}
	return commands, written
}

// fields returns what could be words of a command in a text.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("'\"`\\$&|;<>(){},=:@", r)
	})
}
