package sessionstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Update is the params of a session/update notification without sessionId. [ParseUpdate] makes one
// from JSON.
type Update struct {
	// Kind is the member "sessionUpdate" of the member "update".
	Kind Kind
	// Raw is the JSON object. It must not be modified after the Update was handed over.
	Raw json.RawMessage
}

// String returns the update's JSON.
func (u Update) String() string { return string(u.Raw) }

// Body returns the member "update" of Raw, whose memory it shares, or nil.
func (u Update) Body() json.RawMessage { return strictjson.Find(u.Raw, "update") }

// ParseUpdate validates an update and determines its kind. It must be a JSON object with an object
// as its member "update". The result shares memory with raw.
func ParseUpdate(raw json.RawMessage) (Update, error) {
	if kind, ok := leadingKind(raw); ok && jsontext.Value(raw).IsValid(lenient...) {
		return Update{Kind: kind, Raw: raw}, nil
	}
	if _, err := decodeKind(raw); err != nil {
		return Update{}, fmt.Errorf("not an object with an update: %w", err)
	}
	return StoredUpdate(raw), nil
}

// StoredUpdate returns an update that is known to be valid JSON, because [ParseUpdate] accepted it
// before it was stored or because its message was parsed. It determines the kind without validating
// the JSON again. The kind is "" for JSON that [ParseUpdate] does not accept.
func StoredUpdate(raw json.RawMessage) Update {
	kind, ok := leadingKind(raw)
	if _, _, isSubagent := cutSubagent(raw); isSubagent {
		kind = SubagentEvent
	} else if !ok {
		kind, _ = decodeKind(raw)
	}
	return Update{Kind: kind, Raw: raw}
}

// lenient accepts everything that other implementations may send, because updates are passed on and
// stored byte for byte.
var lenient = []jsontext.Options{
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
}

var kindPrefix = []byte(`{"update":{"sessionUpdate":"`)

// leadingKind returns the kind of an update that begins with its kind, as nearly all do.
func leadingKind(raw []byte) (kind Kind, ok bool) {
	rest, ok := bytes.CutPrefix(raw, kindPrefix)
	if !ok {
		return "", false
	}
	for i, c := range rest {
		switch {
		case c == '"':
			if known, ok := knownKinds()[Kind(rest[:i])]; ok {
				return Kind(known.Name), true // saves an allocation
			}
			return Kind(rest[:i]), true
		case (c < 'a' || c > 'z') && c != '_':
			return "", false
		}
	}
	return "", false
}

// decodeKind returns the kind of any update.
func decodeKind(raw []byte) (Kind, error) {
	var params struct {
		Update *struct {
			Kind jsontext.Value `json:"sessionUpdate"`
		} `json:"update"`
	}
	err := strictjson.Decode(raw, &params)
	switch {
	case err != nil:
		return "", err
	case params.Update == nil:
		return "", errors.New(`it has no member "update"`)
	case params.Update.Kind.Kind() != '"':
		return "", nil
	}
	kind, _ := jsontext.AppendUnquote(nil, params.Update.Kind)
	return Kind(kind), nil
}

// Split separates updates by how a store keeps them: history has the events in order, and states
// the latest update of each state kind in the order of [StateKinds]. Neither contains
// session_info_update, which is stored as the session's title, or a kind that is never recorded.
// Each update in the result is on one line.
func Split(updates []Update) (history, states []Update) {
	history = make([]Update, 0, len(updates))
	kinds := StateKinds()
	latest := make([]Update, len(kinds))
	for _, u := range updates {
		switch {
		case u.Kind.IsState():
			latest[slices.Index(kinds, u.Kind)] = u.onOneLine()
		case u.isEvent():
			history = append(history, u.onOneLine())
		}
	}
	return history, slices.DeleteFunc(latest, func(u Update) bool { return u.Raw == nil })
}

// onOneLine returns u without line feeds. Valid JSON contains them only as white space.
func (u Update) onOneLine() Update {
	if bytes.IndexByte(u.Raw, '\n') >= 0 {
		u.Raw = bytes.ReplaceAll(u.Raw, []byte("\n"), []byte(" "))
	}
	return u
}

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
