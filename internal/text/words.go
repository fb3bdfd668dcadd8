package text

import (
	"fmt"
	"strings"
)

// Words splits a command line into words like a shell, without expanding anything. Except in single
// quotes, a backslash escapes a quote, white space or a backslash. Before anything else it is
// literal, so that Windows paths work. If a quote is not closed, Words returns an error, together
// with the words as if it were closed.
func Words(line string) (words []string, err error) {
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(line) &&
			strings.IndexByte("\\\"' \t\r\n", line[i+1]) >= 0:
			i++
			word.WriteByte(line[i])
			inWord = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
		case quote == 0 && (strings.IndexByte(" \t\r\n", c) >= 0):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	if quote != 0 {
		err = fmt.Errorf("missing closing %c", quote)
	}
	return words, err
}

// HasWords reports whether s contains each word of a filter. Upper case does not matter.
func HasWords(s, filter string) bool {
	s = strings.ToLower(s)
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(s, word) {
			return false
		}
	}
	return true
}

// JoinWords returns a line that [Words] splits into these words.
func JoinWords(words []string) string {
	return JoinFunc(words, " ", func(word string) string {
		if word != "" && !strings.ContainsAny(word, "\\\"' \t\r\n") {
			return word
		}
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	})
}
