package sessionstore

import (
	"bytes"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// ChildUpdate is the kind of an update of a child session, such as that of a subagent. Child
// sessions are not stored as sessions: their updates are events in the history of the session that
// they belong to, whose Raw also has the member sessionId, with the key of the child. [InChild]
// makes one and [Update.Child] takes it apart. Code that does not know the kind skips what children
// did.
const ChildUpdate Kind = "acp-agent/child"

// SubagentUpdate is the kind of an update that announces a child session, or changes what was said
// about it.
const SubagentUpdate Kind = "subagent_update"

// ChildPrefix begins the key of every child session. The rest of a key has small letters and digits
// only. In stored updates such keys also stand for the ids of child sessions.
const ChildPrefix = "sub_"

// ParentKey stands in stored updates for the id of the session that the history belongs to.
const ParentKey = ChildPrefix + "parent"

// InChild returns u as an update of the child session with the given key.
func InChild(key string, u Update) Update {
	raw := make([]byte, 0, len(childStart)+len(key)+len(u.Raw)+2)
	raw = append(append(raw, childStart...), strings.TrimPrefix(key, ChildPrefix)...)
	raw = append(raw, '"', ',')
	object := bytes.TrimLeft(u.Raw, " \t\r\n")
	return Update{Kind: ChildUpdate, Raw: append(raw, object[1:]...)}
}

// Child returns the key of the child session that u is an update of, and u without it. ok is false
// for an update of the session itself.
func (u Update) Child() (key string, of Update, ok bool) {
	if u.Kind != ChildUpdate {
		return "", u, false
	}
	key, rest, ok := cutChild(u.Raw)
	if !ok {
		return "", u, false
	}
	return key, StoredUpdate(append([]byte{'{'}, rest...)), true
}

// isEvent reports whether a history has u. Of a child it has states too, as events.
func (u Update) isEvent() bool {
	if _, of, ok := u.Child(); ok {
		return knownKinds()[of.Kind].Keep != protocol.Nothing
	}
	return knownKinds()[u.Kind].Keep == "" // unknown kinds are events
}

var childStart = []byte(`{"sessionId":"` + ChildPrefix)

// cutChild returns the key of the child in the JSON of an update, and what follows it.
func cutChild(raw []byte) (key string, rest []byte, ok bool) {
	behind, ok := bytes.CutPrefix(raw, childStart)
	if !ok {
		return "", nil, false
	}
	name, rest, ok := bytes.Cut(behind, []byte(`",`))
	if key = ChildPrefix + string(name); !ok || !IsChildKey(key) {
		return "", nil, false
	}
	return key, rest, true
}

// IsChildKey reports whether a text may be the key of a child session.
func IsChildKey(text string) bool {
	rest, ok := strings.CutPrefix(text, ChildPrefix)
	return ok && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
