package terminal

import (
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Permission prints a permission request.
func (p *Printer) Permission(call sdk.ToolCallUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	title := "(no title)"
	if call.Title != nil {
		title = *call.Title
	}
	p.tellCalls()
	p.asking, p.title = true, text.Printable(title)
	p.noteWrapped(p.styled("?", Style{Bold})+" ", p.title, Style{})
	for _, c := range call.Content {
		switch {
		case c.Diff != nil:
			d := conversation.Diff{Path: c.Diff.Path, New: c.Diff.NewText}
			if c.Diff.OldText != nil {
				d.Old = *c.Diff.OldText
			}
			p.Diff(d)
		case c.Content != nil && c.Content.Content.Text != nil:
			for line := range strings.Lines(c.Content.Content.Text.Text) {
				if shown := strings.TrimSpace(line); shown != "" {
					indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
					p.noteWrapped("  "+indent, text.Printable(shown), Style{})
				}
			}
		}
	}
}

// Diff prints a change of a file.
func (p *Printer) Diff(d conversation.Diff) {
	p.noteWrapped("  ", text.Printable(d.Path), Style{})
	for _, line := range d.Lines() {
		s := Style{}
		switch line[0] {
		case '+':
			s = Style{green}
		case '-':
			s = Style{red}
		case '@':
			s = Style{dim}
		}
		// A tab is equally wide everywhere.
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
		p.noteWrapped("  ", text.Plain(line), s)
	}
}

// noteWrapped writes s in a style as separate lines that fit the terminal, all behind the same
// indent. Otherwise the text could continue at the beginning of a line and look like a message of
// acp-agent.
func (p *Printer) noteWrapped(indent, s string, style Style) {
	lines := []string{s}
	if p.width > 0 {
		lines = wrapped(s, max(p.width-Columns(indent)-1, 20))
	}
	for _, line := range lines {
		p.Note("%s%s", indent, p.styled(line, style))
		indent = "  "
	}
}

// Answered prints how a permission request was answered, and the updates that arrived in the
// meantime.
func (p *Printer) Answered(how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Note("  (%s)", how)
	p.asking = false
	for _, u := range p.held {
		p.printUpdate(u)
	}
	p.held = nil
}

// Ask prints the title of the permission request again, because its content can be long, and the
// options, behind which the user types.
func (p *Printer) Ask(options string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.EndLine()
	p.Note("  %s", Cut(p.title, max(p.width-3, 20)))
	p.Print("  " + options + " ")
}

// Typed records that the user has ended the line of a question.
func (p *Printer) Typed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inLine = false
}
