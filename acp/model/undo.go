package model

import (
	"context"
	"iter"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// span is a part of the stored history: a prompt and what followed it.
type span struct {
	from, to int    // the updates number from to to-1
	hidden   bool   // the model does not see it: a slash command, or left out
	acted    bool   // it has tool calls
	at       place  // in the conversation
	said     string // the first text of the prompt
}

// turnLog tells which updates of a history belong to which prompt, and which of them are undone.
// They stay in the history, before a message whose _meta says so. A conversation is restored
// without them, as if they had never been.
type turnLog struct {
	turns  []span // that are not undone, oldest first
	undone []span
}

// follow adds update number i to the conversation, whose lock must be held, and notes which prompt
// it belongs to.
func (l *turnLog) follow(c *conversation, i int, u backend.Update, foreign bool) {
	prompting := len(c.blocks) > 0
	c.apply(u, foreign)
	switch {
	case !prompting && len(c.blocks) > 0:
		l.turns = append(l.turns, span{from: i})
	case prompting && len(c.blocks) == 0:
		l.endPrompt(c)
	}
	if last := len(l.turns) - 1; last >= 0 && u.Kind == sessionstore.ToolCall {
		l.turns[last].acted = true
	}
	if c.leftOut {
		l.hide(end(c.messages))
		c.leftOut = false
	}
	if !c.undone {
		return
	}
	c.undone = false
	if n := l.undoable(); n > 0 {
		left := len(l.turns) - n
		l.undone = append(l.undone, span{from: l.turns[left].from, to: i + 1})
		l.turns = l.turns[:left]
	}
}

// hide notes that the prompts after a place were left out.
func (l *turnLog) hide(from place) {
	for i, turn := range l.turns {
		l.turns[i].hidden = turn.hidden || !turn.at.isBefore(from)
	}
}

// endPrompt notes what the conversation knows of a complete prompt.
func (l *turnLog) endPrompt(c *conversation) {
	last := &l.turns[len(l.turns)-1]
	last.hidden, last.at = c.ignored, c.prompted
	for _, p := range c.prompt {
		if said, ok := p.(llm.Text); ok && last.said == "" {
			last.said = string(said)
		}
	}
}

// undoable returns how many of the last turns are undone together: the last one with a prompt for
// the model, and those after it that the model does not see. It returns 0 if there is no such turn.
func (l *turnLog) undoable() int {
	for i, turn := range slices.Backward(l.turns) {
		if !turn.hidden {
			return len(l.turns) - i
		}
	}
	return 0
}

// restoreWithout makes the conversation what it would be if the history had no updates in the given
// spans. If it fails, the conversation stays as it is. The lock must be held.
func (c *conversation) restoreWithout(
	undone []span, history iter.Seq2[backend.Update, error], foreign int,
) error {
	before := c.knowledge
	c.knowledge = knowledge{}
	i := 0
	for u, err := range history {
		if err != nil {
			c.knowledge = before
			return err
		}
		if !slices.ContainsFunc(undone, func(s span) bool { return s.from <= i && i < s.to }) {
			c.apply(u, i < foreign)
		}
		i++
	}
	c.endPrompt()
	return nil
}

// readLog returns the log of the stored history.
func (s *modelSession) readLog() (turnLog, error) {
	var log turnLog
	var c conversation
	i, foreign := 0, s.snapshot().Foreign
	for u, err := range s.history {
		if err != nil {
			return log, err
		}
		log.follow(&c, i, u, i < foreign)
		i++
	}
	if len(c.blocks) > 0 {
		c.endPrompt()
		log.endPrompt(&c)
	}
	return log, nil
}

// undo answers /undo. Files stay as they are: nothing here knows what others did to them since, or
// what commands did.
func (t *modelTurn) undo(ctx context.Context, _ string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	log, err := t.readLog()
	if err != nil {
		return nil, err
	}
	n := log.undoable()
	if n == 0 {
		return stopped, t.note(ctx, "There is no prompt to undo.")
	}
	undone := log.turns[len(log.turns)-n:]
	said := text.Code(text.Line(text.Plain(undone[0].said), 100))
	if undone[0].said == "" {
		said = "your last prompt"
	}
	report := "The model has forgotten " + said + " and what followed.\n"
	if slices.ContainsFunc(undone, func(s span) bool { return s.acted }) {
		report += "\nFiles were not changed. To see the model's changes, look at the calls above, or ask git.\n"
	}
	err = t.updates.Commit(ctx, meta{Note: true, Undone: true}.message(report))
	if err != nil {
		return nil, err
	}
	return stopped, t.forget()
}

// forget restores the conversation from the stored history, whose last prompt has been undone.
func (t *modelTurn) forget() error {
	log, err := t.readLog()
	if err != nil {
		return err
	}
	t.tools.mentions = discovery.Mentions{}
	c := &t.conversation
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restoreWithout(log.undone, t.history, t.snapshot().Foreign)
}
