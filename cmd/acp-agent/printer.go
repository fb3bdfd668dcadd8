package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/text"
)

// printer prints the updates of a turn as they arrive.
type printer struct {
	mu     sync.Mutex
	out    io.Writer
	inLine bool              // the last text did not end with a newline
	titles map[string]string // of tool calls, by id
	failed error             // the first write error
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, titles: make(map[string]string)}
}

// print writes text.
func (p *printer) print(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.failed == nil {
		p.failed = err
	}
	if text != "" {
		p.inLine = text[len(text)-1] != '\n'
	}
}

// note writes a separate line.
func (p *printer) note(format string, args ...any) {
	if p.inLine {
		p.print("\n")
	}
	p.print(fmt.Sprintf(format, args...) + "\n")
}

// writeJSON writes v as a line of JSON. Characters that a terminal would obey or not show are
// escaped.
func writeJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text.EscapeJSON(line))
	return err
}

// update prints messages and tool calls, and ignores other updates.
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
			p.note("> %s", text.Plain(chunk.Content.Text))
		} else {
			p.print(text.Plain(chunk.Content.Text))
		}
	case "tool_call":
		var call struct{ ToolCallID, Title string }
		if json.Unmarshal(u.Update, &call) == nil {
			p.titles[call.ToolCallID] = call.Title
			p.note("· %s", text.Plain(call.Title))
		}
	case "tool_call_update":
		var call struct{ ToolCallID, Status, Title string }
		if json.Unmarshal(u.Update, &call) == nil && call.Status == "failed" {
			p.note("· failed: %s", text.Plain(cmp.Or(call.Title, p.titles[call.ToolCallID])))
		}
	}
}

// end ends the last line.
func (p *printer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inLine {
		p.print("\n")
	}
}

// line prints a raw message.
func (p *printer) line(sent bool, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	direction := "received"
	if sent {
		direction = "sent"
	}
	p.print(fmt.Sprintf(`{"%s":%s}`+"\n", direction, text.EscapeJSON(line)))
}

// err returns the first write error.
func (p *printer) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
