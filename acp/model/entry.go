package model

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// entry is the member acp-agent in an update's _meta. It says what the update means for the model,
// if its content alone does not.
type entry struct {
	// Tool is the name of the tool that the model calls with a tool_call, or with the first
	// tool_call_update that has it if the call was shown before it was complete. The arguments are
	// its rawInput, and the result is the text in the rawOutput of a later update. Calls of one
	// answer have the same Step, and those of the next answer another one.
	Tool string `json:"tool,omitempty"`
	Step int    `json:"step,omitempty"`
	// Given is the model's ID of the call. From and Attached belong to the call too.
	Given    string          `json:"given,omitempty"`
	From     string          `json:"from,omitempty"`
	Attached json.RawMessage `json:"attached,omitempty"`

	// Thought is the model's thinking. It is in an update without text, after the updates that show
	// the thinking.
	Thought *llm.Thinking `json:"thought,omitempty"`
	// After is how many calls of its answer come before the Thought or the text of a message.
	After int `json:"after,omitempty"`

	// Prompt is in a tool_call the text of whose rawOutput belongs to the user's message.
	Prompt bool `json:"prompt,omitempty"`

	// Note is in a message for the user only: see [backend.Note].
	Note bool `json:"note,omitempty"`
	// Rejected, with Note or Refused, says that the server has not accepted the last request.
	Rejected bool `json:"rejected,omitempty"`

	// The others hide from the model, or replace, what came before. Retried hides the answer so
	// far, which the model starts again.
	Retried bool `json:"retried,omitempty"`
	// Refused hides the last prompt and everything after it.
	Refused bool `json:"refused,omitempty"`
	// Undone hides the last prompt before this one, and everything after it: see [pastPrompt].
	Undone bool `json:"undone,omitempty"`
	// WithoutMedia hides the images and documents that the model has not answered.
	WithoutMedia bool `json:"withoutMedia,omitempty"`
	// WithoutThoughts hides the thoughts so far.
	WithoutThoughts bool `json:"withoutThoughts,omitempty"`
	// Summary replaces the conversation so far. Keep says that the user's last message is kept.
	Summary string `json:"summary,omitempty"`
	Keep    bool   `json:"keep,omitempty"`
}

// entryOf returns the entry in a member acp-agent, an empty one if that is something else.
func entryOf(raw json.RawMessage) (e entry) {
	if json.Unmarshal(raw, &e) != nil {
		return entry{}
	}
	return e
}

// message returns an update with a message of the agent that has an entry.
func message(e entry, text string) backend.Update {
	return backend.MetaChunk(sessionstore.AgentMessageChunk, text, e)
}
