package terminal

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
)

// page writes a turn for people. On a terminal it renders Markdown and shows the progress of tool
// calls in place, elsewhere it has plain text.
type page struct {
	out      io.Writer
	width    int       // of the terminal, 0 if out is not a terminal
	styles   bool      // the terminal has styles
	markdown *markdown // nil to print messages unchanged
	failed   error     // the first write error

	inLine  bool       // the last text did not end with a newline
	live    *shownCall // the call on the last line, which can be replaced
	line    string     // what that line shows
	waiting bool       // the last line says how long nothing has happened
	printed time.Time  // when something was last printed
	silent  bool       // nothing was printed yet

	calls   map[string]*shownCall // by id
	untold  []*shownCall          // pending calls without a line yet, if out is not a terminal
	message string                // the id of the last message of the agent
	thought bool                  // the agent thought since
	reason  string                // why the last call has failed
	plan    []conversation.Step   // as it was last shown
}

// newPage returns an empty page on out, which may be a terminal.
func newPage(out io.Writer) page {
	p := page{out: out, calls: make(map[string]*shownCall), silent: true}
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

// print writes text, in the place of what says that nothing has happened.
func (p *page) print(text string) {
	p.printed = time.Now()
	if p.waiting {
		p.waiting = false
		p.write(eraseLine)
	}
	p.write(text)
	if text != "" {
		p.silent = false
		p.inLine = text[len(text)-1] != '\n'
	}
}

// write writes what does not count as printed.
func (p *page) write(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.failed == nil {
		p.failed = err
	}
}

// endLine ends the current line, if any.
func (p *page) endLine() {
	if p.markdown != nil {
		p.print(p.markdown.rest())
	}
	if p.inLine {
		p.print("\n")
	}
	p.live = nil
}

// note writes a separate line.
func (p *page) note(format string, args ...any) {
	p.endLine()
	p.print(fmt.Sprintf(format, args...) + "\n")
}

// noteWrapped writes s in a style as separate lines that fit the terminal, all behind the same
// indent. Otherwise the text could continue at the beginning of a line and look like a message of
// acp-agent.
func (p *page) noteWrapped(indent, s string, style Style) {
	lines := []string{s}
	if p.width > 0 {
		lines = wrapped(s, max(p.width-Columns(indent)-1, 20))
	}
	for _, line := range lines {
		p.note("%s%s", indent, p.styled(line, style))
		indent = "  "
	}
}

// styled returns s in a style, if the terminal has any.
func (p *page) styled(s string, style Style) string {
	if !p.styles {
		return s
	}
	return style.Apply(s)
}

// Diff prints a change of a file.
func Diff(w io.Writer, d conversation.Diff) error {
	p := newPage(w)
	p.diff(d)
	return p.failed
}

// diff shows a change of a file.
func (p *page) diff(d conversation.Diff) {
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

// eraseLine erases the last line of a terminal.
const eraseLine = "\r\x1b[K"

// quiet is how long nothing is printed before a terminal shows that the agent still works.
const quiet = 3 * time.Second

// tick shows how long nothing has been printed: behind the call that runs, or on its own line
// that the next text replaces.
func (p *page) tick(now time.Time) {
	waited := now.Sub(p.printed)
	if waited < quiet || p.inLine && p.live == nil {
		return
	}
	line := ""
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
	p.write(eraseLine + line + p.styled(said, Style{dim}))
	p.waiting = p.live == nil
}
