package proxy

import (
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/acp/child"
)

// profile names the agent that a command starts, to which its sessions belong (A31): the program's base
// name and its arguments, as "opencode acp". It must not change when the program moves.
func profile(c child.Command) string {
	program := filepath.Base(c.Path)
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		if cut := len(program) - len(ending); cut > 0 && strings.EqualFold(program[cut:], ending) {
			program = program[:cut]
		}
	}
	return line(program, c.Args)
}

// commandLine is what a person types to reach this agent again.
func commandLine(c child.Command) string {
	return "acp-agent -- " + line(c.Path, c.Args)
}

func line(program string, args []string) string {
	words := []string{word(program)}
	for _, arg := range args {
		words = append(words, word(arg))
	}
	return strings.Join(words, " ")
}

// word quotes what a shell would not read as one plain word.
func word(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n\"'`\\$&|;<>()*?[]{}#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
