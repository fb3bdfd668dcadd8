package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Printer prints the updates of a turn as they arrive. On a terminal it renders Markdown and shows
// the progress of tool calls in place, elsewhere it prints plain text.
type Printer struct {
	mu       sync.Mutex
	out      io.Writer
	width    int              // of the terminal, 0 if out is not a terminal
	markdown *markdown        // nil to print messages unchanged
	inLine   bool             // the last text did not end with a newline
	calls    map[string]*call // by id
	message  string           // the id of the last message of the agent
	thought  bool             // the agent thought since
	live     *call            // the call on the last line, which can be replaced
	untold   []*call          // pending calls without a line yet, if out is not a terminal
	asking   bool             // a permission request is shown and not yet answered
	held     []client.Update  // that arrived meanwhile
	title    string           // of the permission request
	cost     string           // of the session, "" if unknown
	failed   error            // the first write error
}

// call is what is known about a tool call.
type call struct{ title, status, said string }

func NewPrinter(out io.Writer) *Printer {
	p := &Printer{out: out, calls: make(map[string]*call)}
	if !ObeysEscapes() {
		return p
	}
	if p.width = Width(out); p.width > 0 && os.Getenv("NO_COLOR") == "" {
		p.markdown = &markdown{}
	}
	return p
}

// ObeysEscapes reports whether a terminal obeys escape sequences. The console of Windows does not
// by default.
func ObeysEscapes() bool { return os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows" }

// Print writes text.
func (p *Printer) Print(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.failed == nil {
		p.failed = err
	}
	if text != "" {
		p.inLine = text[len(text)-1] != '\n'
	}
}

// EndLine ends the current line, if any.
func (p *Printer) EndLine() {
	if p.markdown != nil {
		p.Print(p.markdown.rest())
	}
	if p.inLine {
		p.Print("\n")
	}
	p.live = nil
}

// Note writes a separate line.
func (p *Printer) Note(format string, args ...any) {
	p.EndLine()
	p.Print(fmt.Sprintf(format, args...) + "\n")
}

// styled returns s in a style, if the terminal has any.
func (p *Printer) styled(s string, style Style) string {
	if p.markdown == nil {
		return s
	}
	return style.Apply(s)
}

// Update prints messages, tool calls, notices, compactions and retries, and ignores other updates.
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
	p.printUpdate(u)
}

// printUpdate prints an update.
func (p *Printer) printUpdate(u client.Update) {
	switch u.Kind {
	case "usage_update":
		var usage struct {
			Cost *sdk.Cost `json:"cost"`
		}
		if strictjson.Decode(u.Update, &usage) == nil && usage.Cost != nil {
			p.cost = fmt.Sprintf("%.4f %s", usage.Cost.Amount, text.Plain(usage.Cost.Currency))
		}
	case "tool_call", "tool_call_update":
		p.tool(u.Update)
	case "notice":
		p.notice(u.Update)
	case "compaction_update":
		p.compaction(u.Update)
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		var chunk struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
			MessageID string `json:"messageId"`
			Meta      struct {
				Ours struct {
					Note bool `json:"note"`
				} `json:"acp-agent"`
			} `json:"_meta"`
		}
		if strictjson.Decode(u.Update, &chunk) != nil {
			return
		}
		p.tellCalls()
		said := text.Plain(chunk.Content.Text)
		switch {
		case said == "": // it is no text
		case u.Kind == "user_message_chunk":
			p.Note("> %s", strings.ReplaceAll(strings.TrimSuffix(said, "\n"), "\n", "\n> "))
		case u.Kind == "agent_message_chunk":
			p.say(chunk.MessageID, said)
		case chunk.Meta.Ours.Note:
			p.Note("· %s", strings.TrimSpace(said))
		default:
			p.thought = true
		}
	}
}

// notice prints what the agent or acp-agent tells the user.
func (p *Printer) notice(update json.RawMessage) {
	var said struct {
		Severity    string `json:"severity"`
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if strictjson.Decode(update, &said) != nil {
		return
	}
	s := Style{}
	if said.Severity == "error" {
		s = Style{red}
	}
	lines := shownLines(said.Description)
	if start := strings.TrimSuffix(said.Title, "…"); !strings.HasPrefix(said.Description, start) {
		lines = append([]string{text.Line(said.Title, 1000)}, lines...)
	}
	p.tellCalls()
	indent := p.styled("!", s) + " "
	for _, line := range lines {
		p.noteWrapped(indent, text.Plain(line), Style{})
		indent = "  "
	}
}

// compaction prints that the agent has replaced the conversation so far by a summary.
func (p *Printer) compaction(update json.RawMessage) {
	var said struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if strictjson.Decode(update, &said) != nil {
		return
	}
	p.tellCalls()
	switch said.Status {
	case "completed":
		p.Note("· the agent summarized the conversation so far")
	case "failed":
		p.Note("· the agent could not summarize the conversation: %s",
			text.Line(text.Plain(said.Error), 1000))
	}
}

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

// say prints a piece of a message of the agent.
func (p *Printer) say(message, s string) {
	if p.live != nil || p.thought || p.message != message {
		p.EndLine()
	}
	p.message, p.thought = message, false
	if p.markdown != nil {
		s = p.markdown.add(s)
	}
	p.Print(s)
}

// tool shows a tool call, its progress on a terminal, and why it failed.
func (p *Printer) tool(update json.RawMessage) {
	var said struct {
		ToolCallID string          `json:"toolCallId"`
		Title      string          `json:"title"`
		Status     string          `json:"status"`
		Content    json.RawMessage `json:"content"`
		RawOutput  json.RawMessage `json:"rawOutput"`
	}
	if strictjson.Decode(update, &said) != nil {
		return
	}
	c, known := p.calls[said.ToolCallID]
	if !known {
		c = &call{}
		p.calls[said.ToolCallID] = c
	}
	before := *c
	c.title = cmp.Or(text.Line(text.Plain(said.Title), 1000), c.title)
	c.status = cmp.Or(said.Status, c.status)
	c.said = cmp.Or(textOf(said.Content), c.said)
	switch {
	case c.status == "failed" && before.status != "failed":
		p.untold = slices.DeleteFunc(p.untold, func(other *call) bool { return other == c })
		p.show(c, "✗ ", "· failed: ", Style{red})
		lines := shownLines(cmp.Or(c.said, Sentences(said.RawOutput)))
		const most = 40
		if left := len(lines) - most; left > 0 {
			p.Note("  … (%s above)", text.Count(left, "line", "lines"))
			lines = lines[left:]
		}
		for _, line := range lines {
			p.Note("  %s", text.Line(text.Plain(line), 200))
		}
	case p.width == 0:
		if !known {
			p.untold = append(p.untold, c)
		}
		if c.status != "" && c.status != "pending" {
			p.tellCalls()
		}
	case c.status == "completed" && before.status != "completed":
		p.show(c, "✓ ", "", Style{green})
	case c.status != "completed" && c.status != "failed" && *c != before:
		p.show(c, "· ", "", Style{})
		lines := shownLines(c.said)
		if room := p.width - 1 - Columns(c.title) - 4; len(lines) > 0 && room > 10 {
			progress := lines[0]
			if strings.HasPrefix(c.said, "```") { // output
				progress = lines[len(lines)-1]
			}
			p.Print(p.styled("  "+Cut(OneLine(progress), room), Style{dim}))
		}
		p.live = c
	}
}

// show prints the line of a call. On a terminal it replaces the previous line if that is about the
// same call, and does not end the line while the call may change.
func (p *Printer) show(c *call, mark, plain string, s Style) {
	if p.width == 0 {
		p.Note("%s%s", plain, c.title)
		return
	}
	if p.live == c {
		p.Print("\r\x1b[K")
		p.live = nil
	} else {
		p.EndLine()
	}
	p.Print(p.styled(mark, s) + Cut(c.title, p.width-3))
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
			p.Diff(c.Diff)
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
func (p *Printer) Diff(d *sdk.ToolCallContentDiff) {
	p.noteWrapped("  ", text.Printable(d.Path), Style{})
	old := ""
	if d.OldText != nil {
		old = *d.OldText
	}
	patch := string(diff.Diff("", []byte(old), "", []byte(d.NewText)))
	_, hunks, _ := strings.Cut(patch, "\n+++ \n")
	for line := range strings.Lines(hunks) {
		s := Style{}
		switch line[0] {
		case '+':
			s = Style{green}
		case '-':
			s = Style{red}
		case '@':
			s = Style{dim}
		}
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ") // as wide everywhere
		p.noteWrapped("  ", text.Plain(line), s)
	}
}

// noteWrapped writes s in a style as separate lines that fit the terminal, all behind the same
// indent. Otherwise the text could continue at the beginning of a line and look like a message of
// acp-agent.
func (p *Printer) noteWrapped(indent, s string, style Style) {
	room := max(p.width-Columns(indent)-1, 20)
	for p.width > 0 && Columns(s) > room {
		line := s[:prefixColumns(s, room)]
		p.Note("%s%s", indent, p.styled(line, style))
		indent, s = strings.Repeat(" ", 2), s[len(line):]
	}
	p.Note("%s%s", indent, p.styled(s, style))
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

// End ends the last line.
func (p *Printer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tellCalls()
	p.EndLine()
}

// Line prints a raw message.
func (p *Printer) Line(sent bool, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	direction := "received"
	if sent {
		direction = "sent"
	}
	p.Print(fmt.Sprintf(`{"%s":%s}`+"\n", direction, text.EscapeJSON(line)))
}

// Cost returns what the session has cost as the agent last reported it, "" if it did not.
func (p *Printer) Cost() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// Err returns the first write error.
func (p *Printer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Sentences returns the sentences in a JSON value: the parts for a person, without those for
// programs.
func Sentences(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	if whole, ok := value.(string); ok {
		return text.Shorten(whole, maxDescription)
	}
	return text.Shorten(strings.Join(sentences(value, nil), "; "), maxDescription)
}

// maxDescription is the most bytes of a description.
const maxDescription = 4 << 10

// sentences appends the strings of several words in a JSON value to list.
func sentences(value any, list []string) []string {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			list = sentences(value[name], list)
		}
	case []any:
		for _, element := range value {
			list = sentences(element, list)
		}
	case string:
		if strings.Contains(strings.TrimSpace(value), " ") {
			list = append(list, value)
		}
	}
	return list
}
