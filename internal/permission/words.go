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
		all = appendCommands(all, read, maxNested)
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

// appendCommands appends the words of the commands in a line. Each is also read as the parts of its
// words, and with the words of the commands in its texts, which may use later words: in
// sh -c 'touch $0' x the file is x.
func appendCommands(all [][]string, line string, depth int) [][]string {
	for _, command := range splitCommands(line) {
		var parts, joined []string
		for _, word := range command {
			inner := fields(word)
			parts = append(parts, inner...)
			if len(word) > 2 && word[0] == '-' && word[1] != '-' {
				parts = append(parts, word[2:]) // the value of an option, such as -g.env
			}
			if depth > 0 && len(inner) > 1 && word != line {
				all = appendCommands(all, word, depth-1)
			}
			joined = append(joined, wordsIn(word, depth)...)
		}
		all = append(all, command, parts, joined)
	}
	return all
}

// wordsIn returns the words of the commands in a text, or the text if it is one word.
func wordsIn(s string, depth int) (words []string) {
	if depth == 0 || len(fields(s)) < 2 {
		return []string{s}
	}
	for _, word := range slices.Concat(splitCommands(s)...) {
		if word == s {
			return []string{s}
		}
		words = append(words, wordsIn(word, depth-1)...)
	}
	return words
}

// splitCommands returns the words of the commands that stand in a line, without quotes.
func splitCommands(line string) [][]string {
	tokens, _ := commandline.Split(strings.ReplaceAll(line, "\r", "\n"))
	commands := [][]string{nil}
	for _, t := range tokens {
		last := len(commands) - 1
		switch {
		case t.Kind != commandline.Operator:
			commands[last] = append(commands[last], t.Text)
		case t.Text == "<" || t.Text == ">": // which stand within a command
		case len(commands[last]) > 0:
			commands = append(commands, nil)
		}
	}
	return commands
}

// fields returns what could be words of a command in a text.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("'\"`\\$&|;<>(){},=:@", r)
	})
}
