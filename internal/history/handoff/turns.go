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

// turn is a prompt and what followed it, without thoughts and notes.
type turn struct {
	entries []conversation.Entry
	said    string // the beginning of the prompt
	undoes  bool   // the prompt undid the one before it
}

// isCommand reports whether the prompt of a turn is a command that acp-agent took for the agent
// from, and which no model has seen.
func (t turn) isCommand(from string) bool {
	return backend.IsOwnCommand(t.said, backend.OwnCommands(from))
}

// read returns the turns of a history that an agent has led, without commands and what was undone.
// The last unsent content blocks of the user, which are about to be sent, are left out.
func read(history iter.Seq2[sessionstore.Update, error], from string, unsent int) ([]turn, error) {
	reader := conversation.NewReader()
	var held []sessionstore.Update // the last blocks of the user, perhaps unsent
	for u, err := range history {
		if err != nil {
			return nil, err
		}
		held = append(held, u)
		for len(held) > 0 && (u.Kind != sessionstore.UserMessageChunk || len(held) > unsent) {
			reader.Add(held[0])
			held = held[1:]
		}
	}
	var turns []turn
	for _, t := range split(reader.Entries()) {
		if !t.undoes {
			turns = append(turns, t)
			continue
		}
		// With the last prompt that is not a command, the commands after it are undone.
		for len(turns) > 0 {
			last := turns[len(turns)-1]
			turns = turns[:len(turns)-1]
			if !last.isCommand(from) {
				break
			}
		}
	}
	return slices.DeleteFunc(turns, func(t turn) bool {
		return t.isCommand(from) || len(t.entries) == 0
	}), nil
}

// split returns the turns of a conversation.
func split(entries []conversation.Entry) (turns []turn) {
	for _, e := range entries {
		const longest = 4 << 10
		switch {
		case e.Kind == conversation.Prompt:
			said := text.Prefix(visible(text.Prefix(e.Text, 16*longest)), longest)
			turns = append(turns, turn{said: said})
		case len(turns) == 0:
			turns = append(turns, turn{})
		}
		now := &turns[len(turns)-1]
		now.undoes = now.undoes || e.Undone
		if e.Kind != conversation.Note && e.Kind != conversation.Thought {
			now.entries = append(now.entries, e)
		}
	}
	return turns
}

// changedFiles returns the last state of each file that turns changed, the newest first.
func changedFiles(turns []turn) (files []changes.Edit) {
	at := make(map[string]int)
	for _, t := range turns {
		for _, c := range changes.Edits(t.entries) {
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
