package terminal

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// update shows an update as [Printer.Update] does.
func (p *page) update(of client.Update) {
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
			p.note("> %s", strings.ReplaceAll(strings.TrimSuffix(said, "\n"), "\n", "\n> "))
		case of.Kind == "agent_message_chunk":
			p.say(u.MessageID, said)
		case u.Meta.Ours.Note:
			p.note("· %s", strings.TrimSpace(said))
		default:
			p.thought = true
		}
	}
}

// notice prints what the agent or acp-agent tells the user.
func (p *page) notice(said conversation.Update) {
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
func (p *page) compaction(said conversation.Update) {
	var why string
	_ = strictjson.Decode(said.Error, &why)
	p.tellCalls()
	switch said.Status {
	case "completed":
		p.note("· the agent summarized the conversation so far")
	case "failed":
		p.note("· the agent could not summarize the conversation: %s",
			text.Line(text.Plain(why), 1000))
	}
}

// say prints a piece of a message of the agent.
func (p *page) say(message, s string) {
	if reason := p.reason; strings.TrimSpace(s) == reason && reason != "" {
		p.reason = ""
		return // it was shown with the call that has failed
	}
	if p.live != nil || p.thought || p.message != message {
		p.endLine()
	}
	p.message, p.thought = message, false
	if p.markdown != nil {
		s = p.markdown.add(s)
	}
	p.print(s)
}

// showPlan shows a plan. If only the status of some entries has changed, it shows these.
func (p *page) showPlan(plan []conversation.Step) {
	if slices.Equal(plan, p.plan) {
		return
	}
	known := slices.EqualFunc(plan, p.plan,
		func(a, b conversation.Step) bool { return a.Content == b.Content })
	p.tellCalls()
	if !known {
		p.note("Plan:")
	}
	for i, e := range plan {
		if known && e == p.plan[i] {
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
	p.plan = plan
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
