package sessionstore

import (
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Kind is the type of an update: one of the constants or another kind, or "" if the update has no
// such string.
type Kind string

// The kinds of updates that this program handles differently from others.
const (
	UserMessageChunk        Kind = "user_message_chunk"
	AgentMessageChunk       Kind = "agent_message_chunk"
	AgentThoughtChunk       Kind = "agent_thought_chunk"
	ToolCall                Kind = "tool_call"
	ToolCallUpdate          Kind = "tool_call_update"
	AvailableCommandsUpdate Kind = "available_commands_update"
	CurrentModeUpdate       Kind = "current_mode_update"
	ConfigOptionUpdate      Kind = "config_option_update"
	UsageUpdate             Kind = "usage_update"
	SessionInfoUpdate       Kind = "session_info_update"
	Notice                  Kind = "notice"
)

var knownKinds = sync.OnceValue(func() map[Kind]protocol.UpdateKind {
	known := make(map[Kind]protocol.UpdateKind)
	for _, k := range protocol.UpdateKinds() {
		known[Kind(k.Name)] = k
	}
	return known
})

// StateKinds returns the kinds that describe a state rather than an event, in the order of
// [Histories.States]. A store keeps only the latest update of each.
func StateKinds() []Kind {
	return []Kind{AvailableCommandsUpdate, CurrentModeUpdate, ConfigOptionUpdate, UsageUpdate}
}

// IsState reports whether k is one of [StateKinds].
func (k Kind) IsState() bool { return knownKinds()[k].Keep == protocol.State }

// isEvent reports whether a history has updates of this kind. Unknown kinds are events.
func (k Kind) isEvent() bool { return knownKinds()[k].Keep == "" }

// Needs returns the capability without which a client is not sent updates of this kind, as the path
// of a member of clientCapabilities, or "". known is false for a kind that is reserved for future
// versions of the protocol: it may need a capability. Kinds that begin with "_" are an agent's
// own, and count as known.
func (k Kind) Needs() (capability string, known bool) {
	if k == TurnEndUpdate {
		return "_meta.acp-agent.turnEnds", true
	}
	row, known := knownKinds()[k]
	return row.Needs, known || strings.HasPrefix(string(k), "_")
}
