package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Printer prints the updates of a turn as they arrive. On a terminal it renders Markdown and shows
// the progress of tool calls in place, elsewhere it prints plain text. Print, EndLine, Note, Say,
// Item and Diff take no lock: they are for programs that show no turn, and for other methods.
type Printer struct {
	mu       sync.Mutex
	out      io.Writer
	width    int                   // of the terminal, 0 if out is not a terminal
	styles   bool                  // the terminal has styles
	markdown *markdown             // nil to print messages unchanged
	inLine   bool                  // the last text did not end with a newline
	calls    map[string]*shownCall // by id
	message  string                // the id of the last message of the agent
	thought  bool                  // the agent thought since
	live     *shownCall            // the call on the last line, which can be replaced
	line     string                // what that line shows
	waiting  bool                  // the last line says how long nothing has happened
	printed  time.Time             // when something was last printed
	silent   bool                  // nothing was printed yet
	plan     []conversation.Step   // as it was last shown
	untold   []*shownCall          // pending calls without a line yet, if out is not a terminal
	asking   bool                  // a permission request is shown and not yet answered
	held     []client.Update       // that arrived meanwhile
	title    string                // of the permission request
	reason   string                // why the last call has failed
	failed   error                 // the first write error
}

// NewPrinter returns a printer for out, which may be a terminal.
func NewPrinter(out io.Writer) *Printer {
	p := &Printer{out: out, calls: make(map[string]*shownCall), silent: true}
	if !ObeysEscapes() {
		return p
	}
	if p.width = Width(out); p.width > 0 {
		p.styles = os.Getenv("NO_COLOR") == ""
		p.markdown = &markdown{width: p.width, plain: !p.styles}
	}
	return p
}

// ObeysEscapes reports whether a terminal obeys escape sequences. The console of Windows does not
// by default.
func ObeysEscapes() bool { return os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows" }

// Print writes text.
func (p *Printer) Print(text string) {
	p.printed = time.Now()
	erased := ""
	if p.waiting {
		p.waiting, erased = false, eraseLine
	}
	if _, err := io.WriteString(p.out, erased+text); err != nil && p.failed == nil {
		p.failed = err
	}
	if text != "" {
		p.silent = false
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

// Say writes paragraphs, wrapped between words on a terminal.
func (p *Printer) Say(s string) { p.Item("", s) }

// Item writes paragraphs like [Printer.Say], behind a mark.
func (p *Printer) Item(mark, s string) {
	p.Note("%s", laidOut(mark, s, p.width))
}

// aside is a writer for messages beside what a printer prints.
type aside struct {
	printer *Printer
	to      io.Writer
}

// Aside returns a writer for messages that may appear on the same terminal. What says that the
// printer waits is erased first, and a line that is not complete is ended.
func (p *Printer) Aside(w io.Writer) io.Writer {
	if p.width == 0 || !Is(w) {
		return w
	}
	return aside{p, w}
}

// Write implements [io.Writer].
func (a aside) Write(b []byte) (int, error) {
	a.printer.mu.Lock()
	defer a.printer.mu.Unlock()
	if !a.printer.asking {
		a.printer.EndLine()
		a.printer.Print("")
	}
	return a.to.Write(b)
}

// styled returns s in a style, if the terminal has any.
func (p *Printer) styled(s string, style Style) string {
	if !p.styles {
		return s
	}
	return style.Apply(s)
}

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
	p.printUpdate(u)
}

// printUpdate prints an update.
func (p *Printer) printUpdate(of client.Update) {
	var u conversation.Update
	if strictjson.Decode(of.Update, &u) != nil {
		return
	}
	switch of.Kind {
	case "tool_call", "tool_call_update":
		p.tool(u)
	case "plan":
		p.showPlan(u.Entries)
	case "notice":
		p.notice(u)
	case "compaction_update":
		p.compaction(u)
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		p.tellCalls()
		said := u.Message()
		switch {
		case said == "": // it is not a text
		case of.Kind == "user_message_chunk":
			p.Note("> %s", strings.ReplaceAll(strings.TrimSuffix(said, "\n"), "\n", "\n> "))
		case of.Kind == "agent_message_chunk":
			p.say(u.MessageID, said)
		case u.Meta.Ours.Note:
			p.Note("· %s", strings.TrimSpace(said))
		default:
			p.thought = true
		}
	}
}

// notice prints what the agent or acp-agent tells the user.
func (p *Printer) notice(said conversation.Update) {
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
func (p *Printer) compaction(said conversation.Update) {
	var why string
	_ = strictjson.Decode(said.Error, &why)
	p.tellCalls()
	switch said.Status {
	case "completed":
		p.Note("· the agent summarized the conversation so far")
	case "failed":
		p.Note("· the agent could not summarize the conversation: %s",
			text.Line(text.Plain(why), 1000))
	}
}

// say prints a piece of a message of the agent.
func (p *Printer) say(message, s string) {
	if reason := p.reason; strings.TrimSpace(s) == reason && reason != "" {
		p.reason = ""
		return // it was shown with the call that has failed
	}
	if p.live != nil || p.thought || p.message != message {
		p.EndLine()
	}
	p.message, p.thought = message, false
	if p.markdown != nil {
		s = p.markdown.add(s)
	}
	p.Print(s)
}

// End ends the last line.
func (p *Printer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tellCalls()
	p.EndLine()
	p.Print("")
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

// Err returns the first write error.
func (p *Printer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Sentences returns the sentences in a JSON value, without the parts for programs.
func Sentences(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	if whole, ok := value.(string); ok {
		return text.Shorten(whole, maxDescription)
	}
	var sentences []string
	strictjson.Walk("", value, func(_ string, value any) {
		if s, ok := value.(string); ok && strings.Contains(strings.TrimSpace(s), " ") {
			sentences = append(sentences, s)
		}
	})
	return text.Shorten(strings.Join(sentences, "; "), maxDescription)
}

// maxDescription is the maximum length of a description, in bytes.
const maxDescription = 4 << 10

// showPlan shows a plan. If only the status of some entries has changed, it shows these.
func (p *Printer) showPlan(plan []conversation.Step) {
	if slices.Equal(plan, p.plan) {
		return
	}
	before := p.plan
	p.plan = plan
	known := slices.EqualFunc(before, p.plan,
		func(a, b conversation.Step) bool { return a.Content == b.Content })
	p.tellCalls()
	if !known {
		p.Note("Plan:")
	}
	for i, e := range p.plan {
		if known && e == before[i] {
			continue
		}
		mark := "○ "
		switch e.Status {
		case "completed":
			mark = p.styled("✓ ", Style{green})
		case "in_progress":
			mark = "→ "
		}
		p.noteWrapped("  "+mark, text.Line(text.Plain(e.Content), 500), Style{})
	}
}

// eraseLine erases the last line of a terminal.
const eraseLine = "\r\x1b[K"

// quiet is how long nothing is printed before a terminal shows that the agent still works.
const quiet = 3 * time.Second

// Watch shows on a terminal how long nothing has been printed, until ctx ends.
func (p *Printer) Watch(ctx context.Context) {
	if p.width == 0 {
		return
	}
	p.mu.Lock()
	p.printed = time.Now()
	p.mu.Unlock()
	for now := range pause.Every(ctx, time.Second) {
		p.tick(now)
	}
}

// tick shows how long nothing has been printed: behind the call that runs, or on its own line
// that the next text replaces.
func (p *Printer) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := now.Sub(p.printed)
	if p.asking || waited < quiet || p.inLine && p.live == nil {
		return
	}
	line, since := "", p.printed
	if p.live != nil {
		line = p.line
	}
	said := fmt.Sprintf("  (%d s)", waited/time.Second)
	if line == "" {
		said = fmt.Sprintf("… %d s", waited/time.Second)
	}
	const long = 10 * time.Second
	if p.silent && waited >= long {
		said = Cut(said+"; npx and uvx install an agent first. Ctrl-C stops", p.width-1)
	}
	if room := p.width - 1 - Columns(withoutStyles(line)); room < Columns(said) {
		return
	}
	silent := p.silent
	p.Print(eraseLine + line + p.styled(said, Style{dim}))
	p.printed, p.waiting, p.inLine, p.silent = since, p.live == nil, p.live != nil, silent
}
