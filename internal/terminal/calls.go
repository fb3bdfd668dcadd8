package terminal

import (
	"cmp"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
)

// shownCall is a tool call with what the terminal shows of it.
type shownCall struct {
	conversation.Call
	line string // while it runs
}

// said returns what the call has returned.
func (c *shownCall) said() string { return strings.TrimSpace(strings.Join(c.Texts, "\n")) }

// tellCalls prints the pending calls, whose titles may have grown since they were announced.
func (p *page) tellCalls() {
	calls := p.untold
	p.untold = nil
	for _, c := range calls {
		if c.Title != "" {
			p.note("· %s", c.Title)
		}
	}
}

// tool shows a tool call, its progress on a terminal, and why it failed.
func (p *page) tool(u conversation.Update) {
	c, known := p.calls[u.ToolCallID]
	if !known {
		c = &shownCall{}
		p.calls[u.ToolCallID] = c
	}
	before := c.Status
	c.Merge(u)
	ends := c.Ended() && c.Status != before
	switch {
	case ends && c.Status == "failed":
		p.untold = slices.DeleteFunc(p.untold, func(other *shownCall) bool { return other == c })
		p.show(c, "✗ ", "· failed: ", Style{red})
		p.reason = c.said()
		p.lastLines(shownLines(cmp.Or(c.said(), Sentences(u.RawOutput))), maxReason)
	case p.width == 0:
		if !known {
			p.untold = append(p.untold, c)
		}
		if c.Status != "" && c.Status != "pending" {
			p.tellCalls()
		}
		if ends {
			p.output(c)
		}
	case ends:
		p.show(c, "✓ ", "", Style{green})
		p.output(c)
	case !c.Ended():
		p.progress(c)
	}
	if c.Ended() {
		c.Texts, c.Diffs, c.Output = nil, nil, "" // which may be long, and were shown
	}
}

// progress shows on a terminal what a call does, if that has changed.
func (p *page) progress(c *shownCall) {
	progress := ""
	lines := shownLines(c.said())
	if room := p.width - 1 - Columns(c.Title) - 4; len(lines) > 0 && room > 10 {
		last := lines[0]
		if strings.HasPrefix(c.said(), "```") { // output
			last = lines[len(lines)-1]
		}
		progress = p.styled("  "+Cut(OneLine(last), room), Style{dim})
	}
	if line := c.Title + progress; line != c.line {
		c.line = line
		p.show(c, "· ", "", Style{})
		p.print(progress)
		p.line += progress
		p.live = c
	}
}

// show prints the line of a call. On a terminal it replaces the previous line if that is about the
// same call, and does not end the line while the call may change.
func (p *page) show(c *shownCall, mark, plain string, s Style) {
	if p.width == 0 {
		p.note("%s%s", plain, c.Title)
		return
	}
	if p.live == c {
		p.print(eraseLine)
		p.live = nil
	} else {
		p.endLine()
	}
	p.line = p.styled(mark, s) + Cut(c.Title, p.width-3)
	p.print(p.line)
	if c.Ended() {
		p.print("\n")
	}
}

// shownLines returns the lines of a tool call's text, without empty lines and the marks of code
// blocks.
func shownLines(said string) (lines []string) {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "```") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The maximum number of lines that are shown of the output of a command, and of the reason why a
// call has failed.
const (
	maxOutput = 10
	maxReason = 40
)

// output shows the end of what a command has printed.
func (p *page) output(c *shownCall) {
	if c.Kind != string(sdk.ToolKindExecute) {
		return
	}
	var lines []string
	for line := range strings.Lines(c.said()) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" &&
			!strings.HasPrefix(line, "```") {
			lines = append(lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	p.lastLines(lines, maxOutput)
}

// lastLines shows the last lines, at most max of them.
func (p *page) lastLines(lines []string, max int) {
	if left := len(lines) - max; left > 0 {
		p.note("  … (%s above)", text.Count(left, "line", "lines"))
		lines = lines[left:]
	}
	for _, line := range lines {
		p.noteWrapped("  ", Cut(text.Plain(line), 200), Style{})
	}
}
