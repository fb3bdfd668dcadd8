package proxy

import (
	"strings"

	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/process"
)

// agentName names the agent that a command starts, to which its sessions belong (A31): the program's base
// name and its arguments, as "opencode acp". It must not change when the program moves.
func agentName(c process.Command) string {
	return line(profile.Program(c.Path), c.Args)
}

// commandLine is what a person types to reach this agent again.
func commandLine(c process.Command) string {
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
