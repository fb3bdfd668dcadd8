package terminal

import (
	"fmt"
	"io"

	"github.com/acp-agent/acp-agent/internal/text"
)

// A Progress shows on the last line of a terminal what a command does.
type Progress struct {
	out   io.Writer
	width int  // 0 to show nothing
	shown bool // whether the line has something
}

// NewProgress returns a Progress that shows nothing if out is not a terminal.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out}
	if ObeysEscapes() {
		p.width = Width(out)
	}
	return p
}

// Show replaces what the line shows.
func (p *Progress) Show(format string, args ...any) {
	if p.shown = p.width > 0; p.shown {
		fmt.Fprint(p.out, eraseLine, Cut(text.Plain(fmt.Sprintf(format, args...)), p.width-1))
	}
}

// End erases the line.
func (p *Progress) End() {
	if p.shown {
		fmt.Fprint(p.out, eraseLine)
	}
}
