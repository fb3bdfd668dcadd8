package protocol

import "slices"

// Keeping says what a store keeps of the updates of a kind.
type Keeping int

const (
	Event   Keeping = iota // all of them, in order
	State                  // the latest one
	Title                  // the title in it
	Nothing                // nothing: it is about the moment
)

// An UpdateKind describes a kind of session/update. It is sent only to a client that has declared
// the capability Needs, or to every client if Needs is "".
type UpdateKind struct {
	Name  string
	Keep  Keeping
	Needs string
}

// updateKinds are the kinds of the newest schema, stable and unstable, and those of later releases.
var updateKinds = []UpdateKind{
	{"user_message_chunk", Event, ""},
	{"agent_message_chunk", Event, ""},
	{"agent_thought_chunk", Event, ""},
	{"tool_call", Event, ""},
	{"tool_call_update", Event, ""},
	{"plan", Event, ""},
	{"plan_update", Event, Plans},
	{"plan_removed", Event, Plans},
	{"available_commands_update", State, ""},
	{"current_mode_update", State, ""},
	{"config_option_update", State, ""},
	{"usage_update", State, ""},
	{"session_info_update", Title, ""},
	{"notice", Nothing, Notices},
	{"compaction_update", Event, Compaction},
	{"compaction_summary_chunk", Event, Compaction},
	{"subagent_update", Event, Subagents},
	{"session_message", Event, Subagents},
	{"session_message_chunk", Event, Subagents},
	{"prompt_suggestions_update", Nothing, PromptSuggestions},
}

// UpdateKinds returns the kinds of updates that the program knows.
func UpdateKinds() []UpdateKind { return slices.Clone(updateKinds) }
