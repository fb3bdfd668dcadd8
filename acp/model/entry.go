package model

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// entry says what an update means for the model, if its content alone does not. It is the member
// acp-agent in the update's _meta, and one of the types below, or nil.
type entry any

type (
	// callEntry is in a tool_call of the model, or in the first tool_call_update that has it if the
	// call was shown before it was complete. The arguments are its rawInput, and the result is the
	// text in the rawOutput of a later update.
	callEntry struct {
		Tool string `json:"tool"` // its name
		// Calls of one answer have the same Step, and those of the next answer another one.
		Step int `json:"step,omitempty"`
		// Given is the model's ID of the call. From and Attached belong to the call too.
		Given    string          `json:"given,omitempty"`
		From     string          `json:"from,omitempty"`
		Attached json.RawMessage `json:"attached,omitempty"`
	}
	// textEntry is in a message of the model that comes after so many calls of its answer.
	textEntry struct {
		After int `json:"after,omitempty"`
	}
	// thoughtEntry is the model's thinking, after so many calls of its answer. It is in an update
	// without text, after the updates that show the thinking.
	thoughtEntry struct {
		Thought llm.Thinking `json:"thought"`
		After   int          `json:"after,omitempty"`
	}
	// promptEntry is in a tool_call the text of whose rawOutput belongs to the user's message.
	promptEntry struct {
		Prompt always `json:"prompt"`
	}
	// noteEntry is in a message for the user only: see [backend.Note]. It may say that the server
	// has not accepted the last request.
	noteEntry struct {
		Note     always `json:"note"`
		Rejected bool   `json:"rejected,omitempty"`
	}
	// retriedEntry hides the answer so far from the model, which starts it again.
	retriedEntry struct {
		Note    always `json:"note"`
		Retried always `json:"retried"`
	}
	// refusedEntry hides the last prompt and everything after it. It may say that the server has
	// not accepted the last request.
	refusedEntry struct {
		Refused  always `json:"refused"`
		Rejected bool   `json:"rejected,omitempty"`
	}
	// undoneEntry hides the last prompt before this one, and everything after it: see [pastPrompt].
	undoneEntry struct {
		Note   always `json:"note"`
		Undone always `json:"undone"`
	}
	// noMediaEntry hides the images and documents that the model has not answered.
	noMediaEntry struct {
		WithoutMedia always `json:"withoutMedia"`
	}
	// noThoughtsEntry hides the thoughts so far.
	noThoughtsEntry struct {
		WithoutThoughts always `json:"withoutThoughts"`
	}
	// summaryEntry replaces the conversation so far. Keep says that the user's last message is kept.
	summaryEntry struct {
		Summary string `json:"summary"`
		Keep    bool   `json:"keep,omitempty"`
	}
)

// entries says by which member of its JSON an entry is known. Of several the first one counts.
var entries = []struct {
	member string
	decode func(json.RawMessage) entry
}{
	{"undone", decode[undoneEntry]}, {"summary", decode[summaryEntry]},
	{"refused", decode[refusedEntry]}, {"withoutMedia", decode[noMediaEntry]},
	{"withoutThoughts", decode[noThoughtsEntry]}, {"retried", decode[retriedEntry]},
	{"note", decode[noteEntry]}, {"thought", decode[thoughtEntry]}, {"prompt", decode[promptEntry]},
	{"tool", decode[callEntry]}, {"after", decode[textEntry]},
}

// entryOf returns the entry in a member acp-agent.
func entryOf(raw json.RawMessage) entry {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	for _, known := range entries {
		if members[known.member] != nil {
			return known.decode(raw)
		}
	}
	return nil
}

func decode[E entry](raw json.RawMessage) entry {
	var e E
	_ = json.Unmarshal(raw, &e)
	return e
}

// always is a member that is true.
type always struct{}

func (always) MarshalJSON() ([]byte, error) { return []byte("true"), nil }
func (*always) UnmarshalJSON([]byte) error  { return nil }

// metaOf returns the _meta with an entry.
func metaOf(e entry) map[string]any { return map[string]any{"acp-agent": e} }

// message returns an update with a message of the agent that has an entry.
func message(e entry, text string) backend.Update {
	return backend.MetaChunk(sessionstore.AgentMessageChunk, text, e)
}

// saidUpdate returns an update with what the model said after some calls of an answer.
func saidUpdate(said string, after int) backend.Update {
	if after == 0 {
		return backend.Text(said)
	}
	return message(textEntry{after}, said)
}
