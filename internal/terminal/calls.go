package terminal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// shownCall has the known facts about a tool call.
type shownCall struct{ title, kind, status, said string }

// tellCalls prints the pending calls, whose titles may have grown since they were announced.
func (p *Printer) tellCalls() {
	calls := p.untold
	p.untold = nil
	for _, c := range calls {
		if c.title != "" {
			p.Note("· %s", c.title)
		}
	}
}

// tool shows a tool call, its progress on a terminal, and why it failed.
func (p *Printer) tool(update json.RawMessage) {
	var said struct {
		ToolCallID string          `json:"toolCallId"`
		Title      string          `json:"title"`
		Kind       string          `json:"kind"`
		Status     string          `json:"status"`
		Content    json.RawMessage `json:"content"`
		RawOutput  json.RawMessage `json:"rawOutput"`
	}
	if strictjson.Decode(update, &said) != nil {
		return
	}
	c, known := p.calls[said.ToolCallID]
	if !known {
		c = &shownCall{}
		p.calls[said.ToolCallID] = c
	}
	before := *c
	c.title = cmp.Or(text.Line(text.Plain(said.Title), 1000), c.title)
	c.status = cmp.Or(said.Status, c.status)
	c.kind = cmp.Or(said.Kind, c.kind)
	c.said = cmp.Or(textOf(said.Content), c.said)
	switch {
	case c.status == "failed" && before.status != "failed":
		p.untold = slices.DeleteFunc(p.untold, func(other *shownCall) bool { return other == c })
		p.show(c, "✗ ", "· failed: ", Style{red})
		p.reason = c.said
		p.lastLines(shownLines(cmp.Or(c.said, Sentences(said.RawOutput))), maxReason)
	case p.width == 0:
		if !known {
			p.untold = append(p.untold, c)
		}
		if c.status != "" && c.status != "pending" {
			p.tellCalls()
		}
		if c.status == "completed" && before.status != "completed" {
			p.output(c)
		}
	case c.status == "completed" && before.status != "completed":
		p.show(c, "✓ ", "", Style{green})
		p.output(c)
	case c.status != "completed" && c.status != "failed" && *c != before:
		p.show(c, "· ", "", Style{})
		lines := shownLines(c.said)
		if room := p.width - 1 - Columns(c.title) - 4; len(lines) > 0 && room > 10 {
			progress := lines[0]
			if strings.HasPrefix(c.said, "```") { // output
				progress = lines[len(lines)-1]
			}
			progress = p.styled("  "+Cut(OneLine(progress), room), Style{dim})
			p.Print(progress)
			p.line += progress
		}
		p.live = c
	}
}

// show prints the line of a call. On a terminal it replaces the previous line if that is about the
// same call, and does not end the line while the call may change.
func (p *Printer) show(c *shownCall, mark, plain string, s Style) {
	if p.width == 0 {
		p.Note("%s%s", plain, c.title)
		return
	}
	if p.live == c {
		p.Print(eraseLine)
		p.live = nil
	} else {
		p.EndLine()
	}
	p.line = p.styled(mark, s) + Cut(c.title, p.width-3)
	p.Print(p.line)
	if c.status == "completed" || c.status == "failed" {
		p.Print("\n")
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

// textOf returns the text in the content of a tool call.
func textOf(content json.RawMessage) string {
	var blocks []struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if strictjson.Decode(content, &blocks) != nil {
		return ""
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(strings.TrimRight(block.Content.Text, "\n") + "\n")
	}
	return strings.TrimSpace(b.String())
}

// The maximum number of lines that are shown of the output of a command, and of the reason why a
// call has failed.
const (
	maxOutput = 10
	maxReason = 40
)

// output shows the end of what a command has printed.
func (p *Printer) output(c *shownCall) {
	if c.kind != string(sdk.ToolKindExecute) {
		return
	}
	var lines []string
	for line := range strings.Lines(c.said) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" &&
			!strings.HasPrefix(line, "```") {
			lines = append(lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	p.lastLines(lines, maxOutput)
}

// lastLines shows the last lines, at most max of them.
func (p *Printer) lastLines(lines []string, max int) {
	if left := len(lines) - max; left > 0 {
		p.Note("  … (%s above)", text.Count(left, "line", "lines"))
		lines = lines[left:]
	}
	for _, line := range lines {
		p.noteWrapped("  ", Cut(text.Plain(line), 200), Style{})
	}
}
