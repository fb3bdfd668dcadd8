package terminal

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
)

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
