package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// printer shows a turn to a person, as it comes.
type printer struct {
	mu     sync.Mutex
	out    io.Writer
	inLine bool              // the last text did not end its line
	titles map[string]string // of the tool calls that have begun, by id
	failed error
}

func newPrinter(out io.Writer) *printer { return &printer{out: out, titles: make(map[string]string)} }

// print writes text; the first failure is kept.
func (p *printer) print(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.failed == nil {
		p.failed = err
	}
	if text != "" {
		p.inLine = text[len(text)-1] != '\n'
	}
}

// note writes a line of its own.
func (p *printer) note(format string, args ...any) {
	if p.inLine {
		p.print("\n")
	}
	p.print(fmt.Sprintf(format, args...) + "\n")
}

// update shows what a person reads: the agent's words and its tool calls.
func (p *printer) update(_ context.Context, u client.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch u.Kind {
	case "agent_message_chunk", "user_message_chunk":
		var chunk struct{ Content struct{ Type, Text string } }
		if json.Unmarshal(u.Update, &chunk) != nil {
			return
		}
		if u.Kind == "user_message_chunk" {
			p.note("> %s", harmless(chunk.Content.Text))
		} else {
			p.print(harmless(chunk.Content.Text))
		}
	case "tool_call":
		var call struct{ ToolCallID, Title string }
		if json.Unmarshal(u.Update, &call) == nil {
			p.titles[call.ToolCallID] = call.Title
			p.note("· %s", harmless(call.Title))
		}
	case "tool_call_update":
		var call struct{ ToolCallID, Status, Title string }
		if json.Unmarshal(u.Update, &call) == nil && call.Status == "failed" {
			p.note("· failed: %s", harmless(cmp.Or(call.Title, p.titles[call.ToolCallID])))
		}
	}
}

// harmless is text of several lines that a terminal shows and does not obey: other control characters are written out. What
// an agent says may be what a file says.
func harmless(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if obeyed(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// obeyed reports whether a terminal does something else with r than to show it, but for ends of lines and tabs. Characters
// that turn the direction of writing are among them.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// end closes the last line, and names a stop reason that is not the usual one.
func (p *printer) end(reason sdk.StopReason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inLine {
		p.print("\n")
	}
	if reason != sdk.StopReasonEndTurn {
		p.note("(stopped: %s)", reason)
	}
}

// line is a tap that prints the raw messages.
func (p *printer) line(d jsonrpc.Direction, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	direction := "received"
	if d == jsonrpc.Sent {
		direction = "sent"
	}
	p.print(fmt.Sprintf(`{"%s":%s}`+"\n", direction, line))
}

// err is the first failure to print.
func (p *printer) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
