package terminal

import (
	"slices"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
)

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
