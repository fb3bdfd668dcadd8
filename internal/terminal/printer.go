package terminal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// Printer prints a turn as it goes on: the updates as they arrive, and the questions. Its methods
// are safe for concurrent use.
type Printer struct {
	mu     sync.Mutex
	page   page
	asking bool            // a permission request is shown and not yet answered
	held   []client.Update // that arrived meanwhile
	title  string          // of the permission request
}

// NewPrinter returns a printer for out, which may be a terminal.
func NewPrinter(out io.Writer) *Printer { return &Printer{page: newPage(out)} }

// Update prints messages, tool calls, plans, notices, compactions and retries, and ignores other
// updates.
//
// Updates that arrive while the user is being asked are printed after the answer, because they
// could look like another question.
func (p *Printer) Update(_ context.Context, u client.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		p.held = append(p.held, u)
		return
	}
	p.page.update(u)
}

// Note writes a separate line.
func (p *Printer) Note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page.note("%s", line)
}

// Permission prints a permission request.
func (p *Printer) Permission(call sdk.ToolCallUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	title := "(no title)"
	if call.Title != nil {
		title = *call.Title
	}
	p.asking, p.title = true, text.Printable(title)
	page := &p.page
	page.tellCalls()
	page.noteWrapped(page.styled("?", Style{Bold})+" ", p.title, Style{})
	for _, c := range call.Content {
		switch {
		case c.Diff != nil:
			d := conversation.Diff{Path: c.Diff.Path, New: c.Diff.NewText}
			if c.Diff.OldText != nil {
				d.Old = *c.Diff.OldText
			}
			page.diff(d)
		case c.Content != nil && c.Content.Content.Text != nil:
			for line := range strings.Lines(c.Content.Content.Text.Text) {
				if shown := strings.TrimSpace(line); shown != "" {
					page.noteWrapped("  "+indentOf(line), text.Printable(shown), Style{})
				}
			}
		}
	}
}

// Ask prints the title of the permission request again, because its content can be long, and the
// options, behind which the user types.
func (p *Printer) Ask(options string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page.note("  %s", Cut(p.title, max(p.page.width-3, 20)))
	p.page.print("  " + options + " ")
}

// Typed records that the user has ended the line of a question.
func (p *Printer) Typed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page.inLine = false
}

// Answered prints how a permission request was answered, and the updates that arrived in the
// meantime.
func (p *Printer) Answered(how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page.note("  (%s)", how)
	for _, u := range p.held {
		p.page.update(u)
	}
	p.asking, p.held = false, nil
}

// End ends the last line.
func (p *Printer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page.tellCalls()
	p.page.endLine()
	p.page.print("")
}

// Line prints a raw message.
func (p *Printer) Line(sent bool, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	direction := "received"
	if sent {
		direction = "sent"
	}
	p.page.print(fmt.Sprintf(`{"%s":%s}`+"\n", direction, text.EscapeJSON(line)))
}

// Err returns the first write error.
func (p *Printer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.page.failed
}

// Watch shows on a terminal how long nothing has been printed, until ctx ends. It shows nothing
// while the user is being asked.
func (p *Printer) Watch(ctx context.Context) {
	if p.page.width == 0 {
		return
	}
	p.mu.Lock()
	p.page.printed = time.Now()
	p.mu.Unlock()
	for now := range pause.Every(ctx, time.Second) {
		p.tick(now)
	}
}

func (p *Printer) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asking {
		p.page.tick(now)
	}
}

// aside is a writer for messages beside what a printer prints.
type aside struct {
	printer *Printer
	to      io.Writer
}

// Aside returns a writer for messages that may appear on the same terminal. What says that the
// printer waits is erased first, and a line that is not complete is ended.
func (p *Printer) Aside(w io.Writer) io.Writer {
	if p.page.width == 0 || !Is(w) {
		return w
	}
	return aside{p, w}
}

// Write implements [io.Writer].
func (a aside) Write(b []byte) (int, error) {
	a.printer.mu.Lock()
	defer a.printer.mu.Unlock()
	if !a.printer.asking {
		a.printer.page.endLine()
		a.printer.page.print("")
	}
	return a.to.Write(b)
}
