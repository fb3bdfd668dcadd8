package handoff

import (
	"iter"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxTurns is how many turns are kept in full while a history is read. Of earlier ones only the
// beginning of the prompt and the changed files are kept.
const maxTurns = 50

// turn is a prompt and what followed it.
type turn struct {
	entries []conversation.Entry // nil for an early turn
	said    string               // the beginning of the prompt
	files   []changes.Edit
}

// isCommand reports whether the prompt of a turn is a command of acp-agent, which no model has
// seen.
func (r *record) isCommand(t turn) bool {
	return backend.IsOwnCommand(t.said, backend.OwnCommands(r.from))
}

// record is a history as far as a digest needs it.
type record struct {
	from  string // the agent that has led it
	first string // the first prompt that is not a command
	turns []turn
	plan  *conversation.Entry
}

// read reads a history without the last unsent content blocks of the user, which are about to be
// sent.
func read(
	history iter.Seq2[sessionstore.Update, error], from string, unsent int,
) (record, error) {
	r := record{from: from}
	var updates []sessionstore.Update // of the current turn
	var blocks []sessionstore.Update  // of the user, perhaps unsent
	var turns sessionstore.TurnCounter
	take := func(u sessionstore.Update) {
		if _, begins := turns.Next(u); begins {
			r.endTurn(updates)
			updates = nil
		}
		updates = append(updates, u)
	}
	for u, err := range history {
		if err != nil {
			return record{}, err
		}
		if u.Kind != sessionstore.UserMessageChunk {
			for _, b := range blocks {
				take(b)
			}
			blocks = nil
			take(u)
			continue
		}
		if blocks = append(blocks, u); len(blocks) > unsent {
			take(blocks[0])
			blocks = blocks[1:]
		}
	}
	r.endTurn(updates)
	return r, nil
}

// endTurn adds a turn with these updates.
func (r *record) endTurn(updates []sessionstore.Update) {
	reader := conversation.NewReader()
	for _, u := range updates {
		reader.Add(u)
	}
	var t turn
	undone := false
	for _, e := range reader.Entries() {
		undone = undone || e.Undone
		switch e.Kind {
		case conversation.Note, conversation.Thought:
			continue
		case conversation.Prompt:
			const longest = 4 << 10
			t.said = text.Prefix(visible(text.Prefix(e.Text, 16*longest)), longest)
		}
		t.entries = append(t.entries, e)
	}
	if len(t.entries) == 0 && !undone {
		return
	}
	t.files = changes.Edits(t.entries)
	if r.turns = append(r.turns, t); undone {
		r.undo()
	}
	if n := len(r.turns) - maxTurns; n > 0 {
		r.turns[n-1].entries = nil
	}
}

// undo removes the last turn, which undoes, and the turn that it undoes: the last one that is not a
// command, with the commands after it.
func (r *record) undo() {
	for i, t := range slices.Backward(r.turns[:len(r.turns)-1]) {
		if !r.isCommand(t) {
			r.turns = r.turns[:i]
			return
		}
	}
	r.turns = r.turns[:len(r.turns)-1]
}

// finish removes commands, and notes the first prompt and the last plan.
func (r *record) finish() {
	r.turns = slices.DeleteFunc(r.turns, r.isCommand)
	for _, t := range r.turns {
		if r.first == "" {
			r.first = t.said
		}
		for _, e := range t.entries {
			if e.Kind == conversation.Plan {
				r.plan = &e
			}
		}
	}
}

// calls returns the tool calls of all turns that were kept, the oldest first.
func (r *record) calls() (calls []*conversation.Call) {
	for _, t := range r.turns {
		for _, e := range t.entries {
			if e.Kind == conversation.ToolCall {
				calls = append(calls, e.Call)
			}
		}
	}
	return calls
}

// changedFiles returns the last state of each changed file, the newest first.
func (r *record) changedFiles() (files []changes.Edit) {
	at := make(map[string]int)
	for _, t := range r.turns {
		for _, c := range t.files {
			if i, known := at[c.Path]; known {
				c.Added, c.Removed = c.Added+files[i].Added, c.Removed+files[i].Removed
				files[i].Path = "" // it moves to the end
			}
			at[c.Path] = len(files)
			files = append(files, c)
		}
	}
	files = slices.DeleteFunc(files, func(c changes.Edit) bool { return c.Path == "" })
	slices.Reverse(files)
	return files
}
