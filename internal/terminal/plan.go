package terminal

import (
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// planEntry is an entry of an agent's plan.
type planEntry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// showPlan shows a plan. If only the status of some entries has changed, it shows these.
func (p *Printer) showPlan(update json.RawMessage) {
	var said struct {
		Entries []planEntry `json:"entries"`
	}
	if strictjson.Decode(update, &said) != nil || slices.Equal(said.Entries, p.plan) {
		return
	}
	before := p.plan
	p.plan = said.Entries
	known := slices.EqualFunc(before, p.plan,
		func(a, b planEntry) bool { return a.Content == b.Content })
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
