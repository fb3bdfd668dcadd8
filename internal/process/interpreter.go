package process

import (
	"bufio"
	"os"
	"strings"
)

// Interpreter returns the program that runs a script: a path, or a name that env looks up in PATH,
// such as "node". It returns "" for other programs.
func Interpreter(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	line, _, _ := bufio.NewReaderSize(f, 256).ReadLine() // nothing for a directory
	rest, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if words[0] != "/usr/bin/env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}
