package acp

import (
	"strings"

	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// A session without a title gets the first line of its next prompt. An update of the agent replaces
// the title, and so does the agent's list of its sessions (known.go in sessionstore/internal/core).
// Neither replaces a title that a client has set (session_set_title.go).

// maxChosenTitle is the maximum length of a title that a client sets, in characters. Longer ones
// are truncated. All other titles are those of [listing.TitleLine].
const maxChosenTitle = 200

// title returns the first line that the user typed, without the slash of a command. It is "" for a
// command that has no arguments or is one of the adapter's.
func (p promptParams) title() string {
	command, own := commands.Parse(p.rest)
	switch {
	case own:
		return ""
	case prompts.IsCommandName(command.Name) && command.Arguments == "":
		return ""
	case prompts.IsCommandName(command.Name):
		return firstLine(command.Name + " " + command.Arguments)
	}
	typed, _ := prompts.Typed(p.rest)
	for _, block := range typed {
		if title := firstLine(block.Text); title != "" {
			return title
		}
	}
	return ""
}

// firstLine returns the first line of s with words of the user, as a title.
func firstLine(s string) string {
	s = s[len(beforeWords().FindString(s)):]
	for line := range strings.Lines(s) {
		if title := listing.TitleLine(line); title != "" {
			return title
		}
	}
	return ""
}

// beforeWords matches elements that a program put in front of a text, and the mark of a code block.
var beforeWords = text.Pattern("^(?s:\\s*<([a-z]+[-_][a-z_-]+)>.*?</[a-z]+[-_][a-z_-]+>)*" +
	"(?:\\s*(?:```|~~~)[^\n]*\n)?")
