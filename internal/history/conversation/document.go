package conversation

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/acp-agent/acp-agent/internal/history/markdown"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Document is a conversation with what is said about it at its top. Its texts can be shown.
type Document struct {
	Title, Session, Agent string
	Folders               []string // in order, the working directory first
	Created, Updated      time.Time
	Entries               []Entry
}

// AgentName returns the name of an agent for people.
func AgentName(a sessionstore.Agent) string {
	if a.Profile == "" && a.Kind == "proxy" {
		return "agent without a name" // it was given as a command
	}
	return text.Printable(cmp.Or(a.Profile, a.Kind))
}

// Lines returns the lines of a diff without its file names.
func (d Diff) Lines() []string {
	patch := string(diff.Diff("", []byte(d.Old), "", []byte(d.New)))
	_, hunks, _ := strings.Cut(patch, "\n+++ \n")
	return slices.Collect(strings.Lines(hunks))
}

// Changed returns how many lines of a diff were added and removed.
func Changed(lines []string) (added, removed int) {
	for _, line := range lines {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// mark returns a character for the status of a call or a step.
func mark(status string) string { return cmp.Or(marks[status], "·") }

// marks are the characters for the statuses.
var marks = map[string]string{"completed": "✓", "failed": "✕", "in_progress": "…"}

// mark returns a step's checkbox in Markdown.
func (s Step) mark() string {
	if s.Status == "completed" {
		return "[x]"
	}
	return "[ ]"
}

// WriteMarkdown writes a conversation as Markdown. Thoughts and what tools returned are folded
// where the viewer understands <details>.
func WriteMarkdown(w io.Writer, d Document) error {
	out := &markdownWriter{w: bufio.NewWriter(w), heading: "##", asker: "You"}
	out.printf("# %s\n\n", escaped(d.Title))
	out.printf("- Session: %s\n- Agent: %s\n", text.Code(d.Session), escaped(d.Agent))
	for i, folder := range d.Folders {
		out.printf("- Folder %d: %s\n", i, text.Code(folder))
	}
	out.printf("- Created: %s\n- Last activity: %s\n", d.Created.Format(time.RFC3339),
		d.Updated.Format(time.RFC3339))
	for _, e := range d.Entries {
		out.entry(e)
	}
	return out.w.Flush()
}

// markdownWriter writes Markdown.
type markdownWriter struct {
	w       *bufio.Writer // keeps the first error
	heading string
	asker   string // who prompts
	speaker string // whose heading is above
}

func (m *markdownWriter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(m.w, format, args...)
}

func (m *markdownWriter) entry(e Entry) {
	speaker := "Agent"
	if e.Kind == Prompt {
		speaker = m.asker
	}
	if m.speaker != speaker || e.Kind == Prompt {
		m.printf("\n%s %s\n", m.heading, speaker)
		m.speaker = speaker
	}
	switch e.Kind {
	case Thought:
		m.folded("Thought", inert(e.Text))
	case Compaction:
		m.folded("Compaction", inert(e.Text))
	case Note:
		m.printf("\n> %s\n", escaped(text.Line(e.Text, 1000)))
	case ToolCall:
		m.call(e.Call)
	case Plan:
		m.printf("\n")
		for _, s := range e.Steps {
			m.printf("- %s %s\n", s.mark(), escaped(text.Line(s.Content, 1000)))
		}
		if e.Text != "" {
			m.printf("%s\n", inert(e.Text))
		}
	case SubagentWork:
		m.subagent(e.Subagent)
	default:
		if e.Text != "" {
			m.printf("\n%s\n", inert(e.Text))
		}
	}
	for _, a := range e.Attachments {
		if a.Text != "" {
			m.folded(a.Name, text.Block("", a.Text))
			continue
		}
		m.printf("\n- Attached: %s\n", text.Code(a.Name))
	}
}

func (m *markdownWriter) call(c *Call) {
	title := mark(c.Status) + " " + c.Heading()
	if len(c.texts())+len(c.Diffs) == 0 {
		m.printf("\n- %s\n", escaped(title))
		return
	}
	var b strings.Builder
	for _, d := range c.Diffs {
		b.WriteString(text.Code(d.Path) + "\n\n" +
			text.Block("diff", strings.Join(d.Lines(), "")) + "\n")
	}
	for _, t := range c.texts() {
		if _, _, isBlock := text.CutBlock(t); isBlock {
			t = inert(t)
		} else {
			t = text.Block("", t)
		}
		b.WriteString(t + "\n")
	}
	m.folded(title, b.String())
}

func (m *markdownWriter) subagent(s *Subagent) {
	m.printf("\n<details><summary>Subagent: %s</summary>\n", html.EscapeString(s.Name()))
	inner := &markdownWriter{w: m.w, heading: "####", asker: "Task"}
	for _, e := range s.Entries {
		inner.entry(e)
	}
	m.printf("\n</details>\n")
}

// folded writes Markdown that is shown when its summary is clicked on.
func (m *markdownWriter) folded(summary, content string) {
	m.printf("\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", html.EscapeString(summary),
		strings.Trim(content, "\n"))
}

// inert returns a message in Markdown, without empty lines around it, so that it changes nothing
// around it and loads nothing: what looks like HTML is text, an image is a link, and a block of
// code ends with the message.
func inert(message string) string {
	var (
		b     strings.Builder
		lines markdown.Reader
	)
	for line := range strings.Lines(strings.Trim(message, "\n")) {
		kind := lines.Line(strings.TrimSuffix(line, "\n")).Kind
		// An indented line may be code, too.
		if kind != markdown.Code && kind != markdown.Fence && !strings.HasPrefix(line, "    ") {
			line = inertLine(line)
		}
		b.WriteString(line)
	}
	if fence := lines.Open(); fence != "" {
		b.WriteString("\n" + fence)
	}
	return b.String()
}

// inertLine returns a line in which only what is code can look like HTML or an image.
func inertLine(line string) string {
	var b strings.Builder
	for line != "" {
		special := strings.IndexAny(line, "`<!\\")
		if special < 0 {
			break
		}
		b.WriteString(line[:special])
		line = line[special:]
		n := 1
		switch {
		case line[0] == '`':
			n = codeSpan(line)
		case line[0] == '\\' && len(line) > 1 && line[1] < utf8.RuneSelf:
			n = 2 // it is escaped
		case line[0] == '<', strings.HasPrefix(line, "!["):
			b.WriteByte('\\')
		}
		b.WriteString(line[:n])
		line = line[n:]
	}
	return b.String() + line
}

// codeSpan returns the length of the code in backticks at the beginning of a line, or of the
// backticks if no others end it.
func codeSpan(line string) int {
	ticks := func(at int) int { return len(line[at:]) - len(strings.TrimLeft(line[at:], "`")) }
	n := ticks(0)
	for at := n; ; {
		next := strings.IndexByte(line[at:], '`')
		if next < 0 {
			return n
		}
		at += next
		end := ticks(at)
		if at += end; end == n {
			return at
		}
	}
}

// escaped returns a line as Markdown that shows it as it is.
func escaped(line string) string {
	var b strings.Builder
	for _, r := range line {
		if strings.ContainsRune("\\`*_[]<>&#|~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
