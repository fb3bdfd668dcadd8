package sessionstore

import (
	"bytes"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// SubagentEvent is the kind of an update of a subagent, a session that an agent starts below
// another one. Subagents are not stored as sessions: their updates are events in the history of the
// session that they belong to, whose Raw also has the member sessionId, with the key of the
// subagent. [OfSubagent] makes one and [Update.Subagent] takes it apart. Code that does not know
// the kind skips what subagents did.
const SubagentEvent Kind = "acp-agent/child"

// SubagentUpdate is the kind of an update that announces a subagent, or changes what was said
// about it.
const SubagentUpdate Kind = "subagent_update"

// SubagentPrefix begins the key of every subagent. The rest of a key has small letters and digits
// only. In stored updates such keys also stand for the ids of subagents.
const SubagentPrefix = "sub_"

// ParentKey stands in stored updates for the id of the session that the history belongs to.
const ParentKey = SubagentPrefix + "parent"

// OfSubagent returns u as an update of the subagent with the given key.
func OfSubagent(key string, u Update) Update {
	raw := make([]byte, 0, len(subagentStart)+len(key)+len(u.Raw)+2)
	raw = append(append(raw, subagentStart...), strings.TrimPrefix(key, SubagentPrefix)...)
	raw = append(raw, '"', ',')
	object := bytes.TrimLeft(u.Raw, " \t\r\n")
	return Update{Kind: SubagentEvent, Raw: append(raw, object[1:]...)}
}

// Subagent returns the key of the subagent that u is an update of, and u without it. ok is false
// for an update of the session itself.
func (u Update) Subagent() (key string, of Update, ok bool) {
	if u.Kind != SubagentEvent {
		return "", u, false
	}
	key, rest, ok := cutSubagent(u.Raw)
	if !ok {
		return "", u, false
	}
	return key, StoredUpdate(append([]byte{'{'}, rest...)), true
}

// isEvent reports whether a history has u. Of a subagent it has states too, as events.
func (u Update) isEvent() bool {
	if _, of, ok := u.Subagent(); ok {
		return knownKinds()[of.Kind].Keep != protocol.Nothing
	}
	return knownKinds()[u.Kind].Keep == "" // unknown kinds are events
}

var subagentStart = []byte(`{"sessionId":"` + SubagentPrefix)

// cutSubagent returns the key of the subagent in the JSON of an update, and what follows it.
func cutSubagent(raw []byte) (key string, rest []byte, ok bool) {
	behind, ok := bytes.CutPrefix(raw, subagentStart)
	if !ok {
		return "", nil, false
	}
	name, rest, ok := bytes.Cut(behind, []byte(`",`))
	if key = SubagentPrefix + string(name); !ok || !IsSubagentKey(key) {
		return "", nil, false
	}
	return key, rest, true
}

// IsSubagentKey reports whether a text may be the key of a subagent.
func IsSubagentKey(text string) bool {
	rest, ok := strings.CutPrefix(text, SubagentPrefix)
	return ok && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
